// Runs before the first paint, so that no page flashes in the wrong colours. Kept in its own file
// because the content security policy allows no inline script. The key is Mantine's own.
(() => {
  let choice = "auto";
  try {
    choice = localStorage.getItem("mantine-color-scheme-value") || "auto";
  } catch {
    // Storage can be blocked; the system's choice is then the right one.
  }
  const dark =
    choice === "dark" || (choice === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.setAttribute("data-mantine-color-scheme", dark ? "dark" : "light");
})();
