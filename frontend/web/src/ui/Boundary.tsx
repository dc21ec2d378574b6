import { Component, type ReactNode } from "react";
import { STATES_TEXT } from "../i18n/ui.ts";
import { Failure } from "./States.tsx";

type Props = { children: ReactNode };
type State = { error: Error | null };

/** Catches errors of a part of the page while it renders, and offers to try again. */
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
        title={STATES_TEXT.brokenPart}
        detail={error.message}
        onRetry={() => this.setState({ error: null })}
      />
    );
  }
}
