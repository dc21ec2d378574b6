/// <reference types="vitest/config" />

import { readFileSync } from "node:fs";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";
import { backend } from "./dev/backend.ts";

// Django serves dist/ under /static/ and finds the hashed entry through manifest.json.
export default defineConfig(({ command }) => ({
  base: command === "build" ? "/static/" : "/",
  plugins: [react(), backend(), loginFont()],
  build: {
    outDir: "dist",
    emptyOutDir: true,
    manifest: "manifest.json",
    target: "es2024",
    sourcemap: false,
    cssMinify: true,
  },
  server: { host: "127.0.0.1", port: 5173 },
  test: {
    environment: "happy-dom",
    include: ["src/**/*.test.{ts,tsx}"],
    setupFiles: ["dev/test-setup.ts"],
    css: { modules: { classNameStrategy: "non-scoped" } },
  },
}));

/** Emit the font under a name without a hash for the login page, which is not part of the bundle. */
function loginFont(): Plugin {
  const source = "node_modules/@fontsource-variable/inter/files/inter-latin-wght-normal.woff2";
  return {
    name: "kaiweb-login-font",
    apply: "build",
    generateBundle() {
      this.emitFile({ type: "asset", fileName: "inter.woff2", source: readFileSync(source) });
    },
  };
}
