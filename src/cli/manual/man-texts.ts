/** A term and what it means. */
export interface Entry {
  readonly term: string;
  readonly text: string;
}

/** The paragraphs of the description. */
export const ABOUT: readonly string[] = [
  'The hub pairs each appliance of a home once, through a link at which a person logs in at the portal; from then on it keeps the grant fresh, and hands out bearer tokens on the home network to any appliance that proves who it is. To appliances it is a standard OAuth authorization server.',
  'Commands other than serve, emulator, demo and doctor speak to the running hub over its control socket: as root, as the user of the hub, or as a member of the group latchkey-admin, if the machine has that group.',
  'Results go to standard output, and everything else to standard error. With --json a result is one JSON value a line.',
];

export const EXIT_STATUS: readonly Entry[] = [
  { term: '0', text: 'done' },
  { term: '1', text: 'failed: one line on standard error says what, where, and what to do next' },
  { term: '2', text: 'wrong usage' },
  { term: '3', text: 'status: the result is there, and a person is needed: a notice of severity error stands' },
  { term: '78', text: 'serve, under systemd: it would fail in the same way again, so it is not to be started again' },
  { term: '130', text: 'ended by Ctrl-C' },
];

export const ENVIRONMENT: readonly Entry[] = [
  { term: 'LATCHKEY_CONFIG', text: 'the configuration, where --config names none' },
  {
    term: 'LATCHKEY_SECTION_KEY',
    text: 'overrides one key of the configuration: LATCHKEY_LAN_HTTPS_PORT is https_port of [lan]',
  },
  { term: 'LATCHKEY_DEBUG', text: 'if it is 1, a failure is followed by the stacks of the error and of its causes' },
  { term: 'NO_COLOR', text: 'if it is set, nothing is coloured' },
  { term: 'TERM', text: 'if it is dumb, no line is written over' },
  { term: 'STATE_DIRECTORY, RUNTIME_DIRECTORY, CREDENTIALS_DIRECTORY', text: 'as systemd sets them for a service' },
  { term: 'XDG_STATE_HOME, XDG_RUNTIME_DIR', text: "where the state and the control socket are of a user's own hub" },
];

export const FILES: readonly Entry[] = [
  { term: '/etc/latchkey/latchkey.toml', text: 'the configuration' },
  { term: '/etc/latchkey/credentials/', text: "the portals' client secrets" },
  { term: '/var/lib/latchkey/', text: 'the state: the store, its key, the CA' },
  { term: '/run/latchkey/control.sock', text: 'the control socket of the running hub' },
  { term: '/usr/share/doc/latchkey/examples/latchkey.toml', text: 'every key of the configuration, with its default' },
];

export const SEE_ALSO = '/usr/share/doc/latchkey/README.md, systemctl(1), journalctl(1)';
