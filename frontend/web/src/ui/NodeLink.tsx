import { Link } from "react-router";
import { nodePath } from "./paths.ts";

/** A link to the page of a node. */
export function NodeLink({ node }: { node: string }) {
  return <Link to={nodePath(node)}>{node}</Link>;
}
