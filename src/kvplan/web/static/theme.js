// Before anything is drawn: the theme that was chosen here, if one was.
(() => {
  let chosen = null;
  try { chosen = localStorage.getItem("theme"); } catch { /* no storage: the system's */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
