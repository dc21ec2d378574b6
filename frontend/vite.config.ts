/// <reference types="vitest/config" />
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { backend } from "./dev/backend.ts";

// Django serves what lands in dist/ under /static/ and finds the hashed entry through manifest.json.
export default defineConfig(({ command }) => ({
  base: command === "build" ? "/static/" : "/",
  plugins: [react(), backend()],
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
