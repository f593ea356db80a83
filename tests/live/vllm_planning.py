"""vLLM's own plan of a model on a pretended H100: its model classes on the meta device, its groups.

    .venv-vllm/bin/python tests/live/vllm_planning.py FOLDER '{"available": …, "max_model_len": …}'

Prints one JSON line: blocks, bytes of a block, tokens, concurrency, blocks of a request by group.
Nothing runs on the device that is pretended; kernels are asked whether they would, and say yes.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import types
from typing import Any

os.environ.update(
    HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1", VLLM_LOGGING_LEVEL="ERROR", CUDA_VISIBLE_DEVICES=""
)

NAME, MEMORY, CAPABILITY = "NVIDIA H100 80GB HBM3", 80 << 30, (9, 0)
# Compiled parts of the CUDA wheel, and what is around them: imported, never called.
COMPILED = (
    "_C_stable_libtorch", "_moe_C_stable_libtorch", "_flashmla_C", "_flashmla_extension_C",
    "vllm_flash_attn._vllm_fa2_C", "vllm_flash_attn._vllm_fa3_C",
    "third_party.flashmla.flash_mla_interface",
)  # fmt: skip


class Anything:
    """Stands for a kernel, or for a stream: whatever is asked of it, it is there."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __getattr__(self, name: str) -> Anything:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_: Any, **__: Any) -> Anything:
        return self

    def __bool__(self) -> bool:
        return True


class Kernels:
    """Which kernels are pretended: those that say what is supported, and all while one builds."""

    all = False

    @classmethod
    def pretend(cls) -> None:
        """Answer for vLLM's own namespaces from now on."""
        from torch._ops import _OpNamespace

        found = _OpNamespace.__getattr__

        def kernel(self: Any, name: str) -> Any:
            try:
                return found(self, name)
            except AttributeError:
                own = self.name.rsplit(".", 1)[-1].startswith(("_C", "_moe", "_flash"))
                if name.startswith("__") or not ("supports" in name or (cls.all and own)):
                    raise
                return Anything()

        _OpNamespace.__getattr__ = kernel


def _member(name: str) -> type[Anything]:
    """A member of a module that is pretended."""
    if name.startswith("__"):
        raise AttributeError(name)
    return Anything


def pretend_device() -> Any:
    """An H100 as torch and as vLLM's platform; has to come before anything else of vLLM."""
    for name in COMPILED:
        module = types.ModuleType(f"vllm.{name}")
        vars(module)["__getattr__"] = _member
        sys.modules[f"vllm.{name}"] = module
    import torch

    Kernels.pretend()
    properties = types.SimpleNamespace(
        name=NAME, major=CAPABILITY[0], minor=CAPABILITY[1], total_memory=MEMORY,
        multi_processor_count=132, is_integrated=False, warp_size=32,
        max_threads_per_multi_processor=2048, shared_memory_per_block_optin=232448,
        L2_cache_size=50 << 20,
    )  # fmt: skip
    for name, value in {
        "Stream": Anything, "Event": Anything,
        "current_stream": Anything, "current_device": lambda: 0,
        "get_device_capability": lambda *_: CAPABILITY,
        "get_device_properties": lambda *_, **__: properties,
    }.items():  # fmt: skip
        setattr(torch.cuda, name, value)
    from vllm import platforms

    platforms.vllm_version_matches_substr = lambda _: False  # not "a CPU build"
    import vllm.utils.import_utils as imports

    imports.has_deep_gemm = lambda: True
    from vllm.platforms.cuda import CudaPlatformBase
    from vllm.platforms.interface import DeviceCapability

    answers = {
        "get_device_capability": DeviceCapability(*CAPABILITY), "get_device_name": NAME,
        "get_device_total_memory": MEMORY, "device_count": 8, "num_compute_units": 132,
        "is_integrated_gpu": False, "is_arch_support_pdl": True, "get_cuda_runtime_major": 13,
        "is_fully_connected": True, "is_pin_memory_available": False,
    }  # fmt: skip
    methods = {
        name: classmethod(lambda *_, value=value, **__: value) for name, value in answers.items()
    }
    platforms._current_platform = type("PretendedH100", (CudaPlatformBase,), methods)()
    return platforms._current_platform


def config_of(folder: str, asked: dict[str, Any]) -> Any:
    """The engine's config as an API server resolves it."""
    from vllm.engine.arg_utils import EngineArgs
    from vllm.model_executor.models import registry
    from vllm.usage.usage_lib import UsageContext

    registry._run_in_subprocess = lambda inspect: inspect()  # a new process pretends nothing
    arguments = EngineArgs(model=folder, load_format="dummy", skip_tokenizer_init=True, **asked)
    return arguments.create_engine_config(UsageContext.OPENAI_API_SERVER)


def specs_of(config: Any, platform: Any) -> dict[str, Any]:
    """What each layer of the model's class asks of the cache."""
    import torch
    from torch.overrides import TorchFunctionMode
    from vllm.config import set_current_vllm_config
    from vllm.distributed import (
        ensure_model_parallel_initialized,
        init_distributed_environment,
    )
    from vllm.model_executor.model_loader.utils import initialize_model
    from vllm.utils.torch_utils import set_default_torch_dtype
    from vllm.v1.core.single_type_kv_cache_manager import register_all_kvcache_specs
    from vllm.v1.worker.gpu.attn_utils import get_kv_cache_spec

    class OnMeta(TorchFunctionMode):
        """Tensors of the pretended device have no memory."""

        def __torch_function__(
            self, function: Any, _: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = dict(kwargs or {})
            if "cuda" in str(kwargs.get("device", "")) or isinstance(kwargs.get("device"), int):
                kwargs["device"] = "meta"
            if getattr(function, "__name__", "") == "cuda":
                return args[0].to("meta")
            return function(*[_meta(arg) for arg in args], **kwargs)

    def _meta(arg: Any) -> Any:
        is_device = isinstance(arg, str | torch.device) and str(arg).startswith("cuda")
        return "meta" if is_device else arg

    with set_current_vllm_config(config), tempfile.TemporaryDirectory() as folder:
        init_distributed_environment(1, 0, f"file://{folder}/store", 0, "gloo")
        ensure_model_parallel_initialized(1, 1)
        dtype = config.model_config.dtype
        Kernels.all = True
        with set_default_torch_dtype(dtype), torch.device("meta"), OnMeta():
            initialize_model(vllm_config=config)
        Kernels.all = False
        platform.update_block_size_for_backend(config)
        register_all_kvcache_specs(config)
        found: dict[str, Any] = get_kv_cache_spec(config)
    return found


def plan(config: Any, specs: dict[str, Any], available: int) -> dict[str, Any]:
    """Groups, blocks and the figures that are printed, by vLLM's own functions."""
    from vllm.config import get_layers_from_vllm_config
    from vllm.model_executor.layers.attention_layer_base import AttentionLayerBase
    from vllm.v1.attention.backends.utils import (
        get_supported_kv_cache_layouts,
        resolve_kv_cache_layout,
    )
    from vllm.v1.core import kv_cache_utils as cache

    layers = get_layers_from_vllm_config(config, AttentionLayerBase)
    backends = {layers[name].get_attn_backend() for name in specs}
    layouts = [layout.name for layout in get_supported_kv_cache_layouts(backends)]
    resolve_kv_cache_layout(config, [layouts], list(specs.values()))
    configs = cache.get_kv_cache_configs(config, [specs], [available])
    whole = cache.generate_scheduler_kv_cache_config(configs)
    tokens, concurrency = cache.get_kv_cache_capacity(config, whole)
    groups = [group.kv_cache_spec for group in configs[0].kv_cache_groups]
    return {
        "num_blocks": whole.num_blocks,
        "bytes_per_block": cache._pool_bytes_per_block(config, configs[0].kv_cache_groups),
        "kv_tokens": tokens,
        "max_concurrency": concurrency,
        "block_sizes": sorted(spec.block_size for spec in groups),
        "blocks_per_sequence": sorted(
            -(-spec.max_memory_usage_bytes(config) // spec.page_size_bytes) for spec in groups
        ),
    }


def main(folder: str, asked: dict[str, Any]) -> None:
    """One model, one plan."""
    available = asked.pop("available")
    platform = pretend_device()
    config = config_of(folder, asked)
    print(json.dumps(plan(config, specs_of(config, platform), available)))


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
