// Runs before the first paint, so that no page flashes in the wrong colours. Kept in its own file
// because the content security policy allows no inline script. The key is Mantine's own.
(() => {
  let choice = "auto";
  try {
    choice = localStorage.getItem("mantine-color-scheme-value") || "auto";
  } catch {
    // Storage can be blocked; the system's choice is then the right one.
  }
  const system = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const dark = choice === "dark" || (choice === "auto" && system.matches);
    document.documentElement.setAttribute("data-mantine-color-scheme", dark ? "dark" : "light");
  };
  apply();
  // The app follows a change of the system by itself; the log-in page has no other script. The app also lets users
  // choose anew, so there this script must not come back to the choice that it read.
  if (document.currentScript?.hasAttribute("data-follows-system") && choice === "auto") {
    system.addEventListener("change", apply);
  }
})();
