/** Users, their roles and tokens. */
import type { Role, RoleBinding, Scope, Token, TokenCreated, User } from "../model/rows.ts";
import { call } from "./client.ts";

type Items<T> = { readonly items: readonly T[] };
export type NewToken = {
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly subtree: string | null;
  readonly expiresAt: string | null;
  readonly networks: readonly string[];
};
export type NewUser = {
  readonly username: string;
  readonly displayName: string;
  readonly password: string;
};
export type NewBinding = {
  readonly username: string;
  readonly role: Role;
  readonly subtree: string | null;
};

/** Return the caller's tokens, or those of all users. */
export function listTokens(isAll: boolean, signal: AbortSignal): Promise<Items<Token>> {
  return call("GET", isAll ? "/tokens?all=true" : "/tokens", { signal });
}

/** Create a token. Only this answer has its secret. */
export function createToken(token: NewToken): Promise<TokenCreated> {
  return call("POST", "/tokens", { body: token });
}

export function deleteToken(id: number): Promise<void> {
  return call("DELETE", `/tokens/${id}`);
}

export function listUsers(signal: AbortSignal): Promise<Items<User>> {
  return call("GET", "/users", { signal });
}

export function createUser(user: NewUser): Promise<User> {
  return call("POST", "/users", { body: user });
}

export function patchUser(username: string, change: { isActive: boolean }): Promise<User> {
  return call("PATCH", `/users/${encodeURIComponent(username)}`, { body: change });
}

export function listBindings(signal: AbortSignal): Promise<Items<RoleBinding>> {
  return call("GET", "/role-bindings", { signal });
}

export function createBinding(binding: NewBinding): Promise<RoleBinding> {
  return call("POST", "/role-bindings", { body: binding });
}

export function deleteBinding(id: number): Promise<void> {
  return call("DELETE", `/role-bindings/${id}`);
}
