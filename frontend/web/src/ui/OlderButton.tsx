import { Button } from "@mantine/core";
import { OLDER } from "../i18n/ui.ts";

type Props = {
  pages: { readonly isLoadingMore: boolean; readonly loadMore: () => void };
};

/** Loads the next page of a list that begins with the newest rows. */
export function OlderButton({ pages }: Props) {
  return (
    <Button
      size="compact-sm"
      variant="default"
      loading={pages.isLoadingMore}
      onClick={pages.loadMore}
    >
      {OLDER}
    </Button>
  );
}
