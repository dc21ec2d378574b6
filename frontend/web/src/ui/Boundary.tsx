import { Component, type ReactNode } from "react";
import { Failure } from "./States.tsx";

type Props = { children: ReactNode };
type State = { error: Error | null };

/** Catches what a part of a page throws while rendering, and offers to try again. */
export class Boundary extends Component<Props, State> {
  override state: State = { error: null };

  static getDerivedStateFromError(error: Error): State {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <Failure
        title="This part could not be shown"
        detail={error.message}
        onRetry={() => this.setState({ error: null })}
      />
    );
  }
}
