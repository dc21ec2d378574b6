import type { Plugin } from "vite";

export function backend(): Plugin {
  return { name: "kaiweb-backend" };
}
