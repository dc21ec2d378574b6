import { ActionIcon, Menu, useMantineColorScheme } from "@mantine/core";
import {
  IconBaselineDensityMedium,
  IconBaselineDensitySmall,
  IconCheck,
  IconDeviceDesktop,
  IconKeyboard,
  IconLogout,
  IconMoon,
  IconSun,
  IconUserCircle,
} from "@tabler/icons-react";
import { csrfToken } from "../api/client.ts";
import { useMe } from "../api/useMe.ts";
import { usePreferences } from "../ui/preferences.ts";

const THEMES = [
  { value: "light", word: "Light", icon: IconSun },
  { value: "dark", word: "Dark", icon: IconMoon },
  { value: "auto", word: "As the system", icon: IconDeviceDesktop },
] as const;

export function UserMenu({ onHelp }: { onHelp: () => void }) {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const { density, shortcuts, set } = usePreferences();
  const me = useMe();
  const isCompact = density === "compact";
  return (
    <>
      <ActionIcon
        variant="subtle"
        color="gray"
        size="lg"
        aria-label={isCompact ? "Comfortable rows" : "Compact rows"}
        title={isCompact ? "Comfortable rows" : "Compact rows"}
        onClick={() => set({ density: isCompact ? "comfortable" : "compact" })}
      >
        {isCompact ? (
          <IconBaselineDensitySmall size={18} />
        ) : (
          <IconBaselineDensityMedium size={18} />
        )}
      </ActionIcon>
      <Menu position="bottom-end" width={220} shadow="md">
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" size="lg" aria-label="Theme" title="Theme">
            <IconSun size={18} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {THEMES.map(({ value, word, icon: Icon }) => (
            <Menu.Item
              key={value}
              leftSection={<Icon size={16} />}
              rightSection={
                colorScheme === value ? <IconCheck size={14} aria-label="chosen" /> : null
              }
              onClick={() => setColorScheme(value)}
            >
              {word}
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
      <Menu position="bottom-end" width={240} shadow="md">
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" size="lg" aria-label="You" title={me?.username}>
            <IconUserCircle size={20} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Label>{me ? `Signed in as ${me.displayName || me.username}` : "…"}</Menu.Label>
          <Menu.Item leftSection={<IconKeyboard size={16} />} onClick={onHelp}>
            Keyboard
          </Menu.Item>
          <Menu.Item
            closeMenuOnClick={false}
            leftSection={shortcuts ? <IconCheck size={16} /> : <span />}
            onClick={() => set({ shortcuts: !shortcuts })}
          >
            Single-key shortcuts {shortcuts ? "on" : "off"}
          </Menu.Item>
          <Menu.Divider />
          <Menu.Item leftSection={<IconLogout size={16} />} onClick={signOut}>
            Sign out
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
    </>
  );
}

/** Signing out is a form post, so that Django ends the session and sends us to its login page. */
function signOut(): void {
  const form = document.createElement("form");
  form.method = "post";
  form.action = "/logout";
  const token = document.createElement("input");
  token.type = "hidden";
  token.name = "csrfmiddlewaretoken";
  token.value = csrfToken();
  form.append(token);
  document.body.append(form);
  form.submit();
}
