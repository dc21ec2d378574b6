import type { Me } from "../model/rows.ts";

export function adminMe(): Me {
  return {
    username: "admin",
    displayName: "Admin",
    kind: "session",
    isAdmin: true,
    roles: [{ role: "admin", subtree: null }],
    seesOnly: null,
    rights: {
      editQueues: true,
      actOnWorkloads: true,
      adminQueues: true,
      simulate: true,
      manageTokens: true,
    },
  };
}

export function editorMe(subtree: string): Me {
  return {
    username: "ed",
    displayName: "Ed",
    kind: "session",
    isAdmin: false,
    roles: [{ role: "editor", subtree }],
    seesOnly: null,
    rights: {
      editQueues: true,
      actOnWorkloads: true,
      adminQueues: false,
      simulate: true,
      manageTokens: false,
    },
  };
}
