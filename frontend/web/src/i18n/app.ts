/** Texts of the frame around every page: navigation, live indicator, banners and menus. */
import { type MemoryUnit, plural } from "./numbers.ts";

export const PAGES = {
  overview: "Overview",
  queues: "Queues",
  workloads: "Workloads",
  nodes: "Nodes",
  scheduler: "Scheduler",
  simulate: "Simulate",
  changes: "Changes",
  usage: "Usage",
  audit: "Audit",
  settings: "Settings",
} as const;

export const SHELL = {
  product: "kaiweb",
  skip: "Skip to content",
  navigation: "Pages",
  home: "kaiweb, overview",
  collapse: "Collapse",
  collapseNavigation: "Collapse the navigation",
  expandNavigation: "Expand the navigation",
  statusAndPreferences: "Status and preferences",
} as const;

export const PALETTE = {
  title: "Search",
  open: "Search everything",
  button: "Search",
  keys: "Ctrl K",
  label: "Queue, workload, pod, user, node or GPU",
  placeholder: "Queue, workload, pod, user, node, GPU or page",
  results: "Results",
  none: "Nothing matches.",
  kinds: {
    page: "Pages",
    queue: "Queues",
    workload: "Workloads",
    pod: "Pods",
    user: "Users",
    node: "Nodes",
    gpu: "GPUs",
  },
} as const;

export const NOT_FOUND = {
  title: "Page not found",
  text: "No page at {path}.",
  link: "Go to the overview",
} as const;

export const PAGE_ERROR = {
  title: "This page could not be loaded",
  reason: "Loading failed. kaiweb may have been updated: try again to load the new version.",
  offline: "The server does not answer. This page loads by itself as soon as it does.",
} as const;

export const DENIED = {
  title: "You may not see this",
  page: "No access",
  missing: (right: string) => `What is missing: ${right}`,
  whoCan: (names: readonly string[]) =>
    names.length === 0
      ? "An administrator can give it to you."
      : `${names.join(", ")} can give it to you.`,
  where: "Rights are given on the page Settings, tab Users, for a queue and all below it.",
  yours: (roles: string) => `You are: ${roles || "a user without a role"}.`,
  role: (role: string, subtree: string | null) =>
    subtree === null ? `${role} of the whole cluster` : `${role} below ${subtree}`,
  back: "Back to the overview",
  unknown: "the page did not say which",
} as const;

export const OFFLINE = {
  title: "No connection",
  current: "Connected",
  currentText: "The data shown is current. You can go on working.",
  text: "The server does not answer. The pages go on showing what was received last, and nothing can be edited.",
  signedOut: "You have been signed out. Sign in again to see current data.",
  since: "Last heard of",
  never: "never",
  next: "Next attempt",
  soon: "soon",
  inTime: (wait: string) => `in ${wait}`,
  ago: (age: string) => `${age} ago`,
  retry: "Try now",
  kept: "What this browser still has",
  columns: ["Data", "Rows", "As of"],
  topics: {
    cluster: "Overview",
    queues: "Queues",
    workloads: "Workloads",
    nodes: "Nodes",
    sessions: "Sessions",
  },
  nothing: "Nothing was received yet.",
  details: "Details",
} as const;

export const BANNER = {
  signedOut: "You have been signed out, and the data shown may be out of date. {link} to continue.",
  signIn: "Sign in again",
  offline:
    "No connection for more than a minute: the data shown may be out of date, and cannot be edited. kaiweb keeps trying to reconnect.",
  behind: (age: string) =>
    `The data shown is ${age} old, because kaiweb does not hear from the cluster. Nothing can be edited until it does.`,
} as const;

/** What the live indicator shows: a short label, and an explanation. */
export type LiveText = { readonly label: string; readonly detail: string };

export const LIVE = {
  dialog: "Live connection",
  asOf: "As of",
  nothingYet: "nothing received yet",
  session: "Session",
  noSession: "none yet",
  clusterVersion: "Cluster version",
  unknown: "unknown",
  retry: "Try now",
  pause: "Pause updates",
  resume: "Resume updates",
  signedOut: { label: "Signed out", detail: "You have been signed out. Sign in again." },
  refused: {
    label: "Refused",
    detail: "The server refused live updates. Reload the page, or ask an administrator for access.",
  },
  connecting: { label: "Connecting", detail: "The live connection is being opened." },
  offline: (wait: string | null): LiveText => ({
    label: "Offline",
    detail: `The connection was lost. ${wait === null ? "Trying again soon." : `Next attempt in ${wait}.`}`,
  }),
  paused: (waiting: number): LiveText => ({
    label: `Paused · ${waiting}`,
    detail: `${plural(waiting, "row")} changed since you paused. Resume to see the changes.`,
  }),
  lagging: (lag: string): LiveText => ({
    label: `Delayed ${lag}`,
    detail: `The data shown is ${lag} behind the cluster.`,
  }),
  silent: (age: string): LiveText => ({
    label: `Delayed ${age}`,
    detail: `Nothing was received for ${age}: the data shown may be out of date.`,
  }),
  live: { label: "Live", detail: "Changes appear as they happen." },
} as const;

export const KEYBOARD = {
  title: "Keyboard",
  search: "Search on this page",
  palette: "Search everything",
  pause: "Pause or resume live updates",
  move: "Move in tables and grids",
  moveSideways: "Collapse or expand a queue, move between GPUs",
  open: "Open the focused item",
  edit: "Edit the focused queue",
  moveQueue: "Move the focused queue",
  cut: "Cut the focused queue",
  paste: "Move the cut queue below the focused one",
  undo: "Undo the last change",
  inline: "Edit the cells of the focused queue",
  close: "Close",
} as const;

export const MENU = {
  comfortableRows: "Comfortable rows",
  compactRows: "Compact rows",
  theme: "Theme",
  light: "Light",
  dark: "Dark",
  system: "Use system setting",
  selected: "selected",
  user: "You",
  signedInAs: (name: string) => `Signed in as ${name}`,
  unknownUser: "…",
  help: "Help and glossary",
  utc: (isUtc: boolean) => (isUtc ? "Times in UTC" : "Times of this browser"),
  memory: (unit: MemoryUnit) => `Memory in ${unit}`,
  keyboard: "Keyboard",
  shortcuts: (areOn: boolean) => `Single-key shortcuts ${areOn ? "on" : "off"}`,
  signOut: "Sign out",
} as const;
