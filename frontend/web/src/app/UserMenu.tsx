import { ActionIcon, Menu, useMantineColorScheme } from "@mantine/core";
import {
  IconBaselineDensityMedium,
  IconBaselineDensitySmall,
  IconCheck,
  IconDeviceDesktop,
  IconHelp,
  IconKeyboard,
  IconLogout,
  IconMoon,
  IconSun,
  IconUserCircle,
} from "@tabler/icons-react";
import { Link } from "react-router";
import { csrfToken } from "../api/client.ts";
import { useMe } from "../api/useMe.ts";
import { MENU } from "../i18n/app.ts";
import { usePreferences } from "../ui/preferences.ts";

const THEMES = [
  { value: "light", name: MENU.light, icon: IconSun },
  { value: "dark", name: MENU.dark, icon: IconMoon },
  { value: "auto", name: MENU.system, icon: IconDeviceDesktop },
] as const;

/** Inside the landmark of its button, and with nothing but its items in it. */
const MENU_PROPS = {
  position: "bottom-end",
  shadow: "md",
  withinPortal: false,
  withInitialFocusPlaceholder: false,
} as const;

/** As wide as the check, so that the texts of all items are one below the other. */
const UNCHECKED = <span style={{ width: 16 }} />;

export function UserMenu({ onHelp }: { onHelp: () => void }) {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const { density, shortcuts, utc, memoryUnit, set } = usePreferences();
  const me = useMe();
  const isCompact = density === "compact";
  return (
    <>
      <ActionIcon
        variant="subtle"
        color="gray"
        size="lg"
        aria-label={isCompact ? MENU.comfortableRows : MENU.compactRows}
        title={isCompact ? MENU.comfortableRows : MENU.compactRows}
        onClick={() => set({ density: isCompact ? "comfortable" : "compact" })}
      >
        {isCompact ? (
          <IconBaselineDensitySmall size={18} />
        ) : (
          <IconBaselineDensityMedium size={18} />
        )}
      </ActionIcon>
      <Menu {...MENU_PROPS} width={220}>
        <Menu.Target>
          <ActionIcon
            variant="subtle"
            color="gray"
            size="lg"
            aria-label={MENU.theme}
            title={MENU.theme}
          >
            <IconSun size={18} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {THEMES.map(({ value, name, icon: Icon }) => (
            <Menu.Item
              key={value}
              leftSection={<Icon size={16} />}
              rightSection={
                colorScheme === value ? <IconCheck size={14} aria-label={MENU.selected} /> : null
              }
              onClick={() => {
                setColorScheme(value);
                set({ theme: value });
              }}
            >
              {name}
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
      <Menu {...MENU_PROPS} width={240}>
        <Menu.Target>
          <ActionIcon
            variant="subtle"
            color="gray"
            size="lg"
            aria-label={MENU.user}
            title={me?.username}
          >
            <IconUserCircle size={20} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Label>
            {me ? MENU.signedInAs(me.displayName || me.username) : MENU.unknownUser}
          </Menu.Label>
          <Menu.Item leftSection={<IconHelp size={16} />} component={Link} to="/help">
            {MENU.help}
          </Menu.Item>
          <Menu.Item leftSection={<IconKeyboard size={16} />} onClick={onHelp}>
            {MENU.keyboard}
          </Menu.Item>
          <Menu.Item
            closeMenuOnClick={false}
            leftSection={shortcuts ? <IconCheck size={16} /> : UNCHECKED}
            onClick={() => set({ shortcuts: !shortcuts })}
          >
            {MENU.shortcuts(shortcuts)}
          </Menu.Item>
          <Menu.Item
            closeMenuOnClick={false}
            leftSection={utc ? <IconCheck size={16} /> : UNCHECKED}
            onClick={() => set({ utc: !utc })}
          >
            {MENU.utc(utc)}
          </Menu.Item>
          <Menu.Item
            closeMenuOnClick={false}
            leftSection={memoryUnit === "GiB" ? <IconCheck size={16} /> : UNCHECKED}
            onClick={() => set({ memoryUnit: memoryUnit === "GiB" ? "GB" : "GiB" })}
          >
            {MENU.memory(memoryUnit)}
          </Menu.Item>
          <Menu.Divider />
          <Menu.Item leftSection={<IconLogout size={16} />} onClick={signOut}>
            {MENU.signOut}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
    </>
  );
}

/** Sign out with a form post: Django ends the session and redirects to its login page. */
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
