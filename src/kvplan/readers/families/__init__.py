"""One file an attention family: config keys to what each layer keeps and every tensor."""
