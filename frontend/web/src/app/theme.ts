import { createTheme, type MantineColorsTuple } from "@mantine/core";

// The accent colour. Shade 7 on white and white on shade 7 both reach a contrast of 5.9:1.
const ink: MantineColorsTuple = [
  "#e6f6f7",
  "#cdeaec",
  "#9ed5d9",
  "#6cbfc5",
  "#44adb4",
  "#2aa1a9",
  "#168089",
  "#0b6670",
  "#08545d",
  "#04424a",
];

// Mantine's dark greys are neutral; these match the blue of the navigation.
const dark: MantineColorsTuple = [
  "#e5ebef",
  "#c3ced6",
  "#9fadb8",
  "#71808b",
  "#33414a",
  "#26323a",
  "#1b252c",
  "#141b20",
  "#10161a",
  "#0b0f12",
];

export const theme = createTheme({
  primaryColor: "ink",
  colors: { ink, dark },
  black: "#16202b",
  primaryShade: { light: 7, dark: 6 },
  autoContrast: true,
  luminanceThreshold: 0.24,
  fontFamily: '"Inter Variable", system-ui, -apple-system, "Segoe UI", sans-serif',
  fontFamilyMonospace: 'ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, monospace',
  defaultRadius: "sm",
  cursorType: "pointer",
  focusRing: "auto",
  respectReducedMotion: true,
  // Mantine's own grey has too little contrast on white.
  components: { Notification: { styles: { description: { color: "var(--dim)" } } } },
  fontSizes: { xs: "11.5px", sm: "13px", md: "14px", lg: "16px", xl: "19px" },
  headings: { fontWeight: "620" },
});
