import type { Configuration } from '../../configuration/configuration.ts';

/** The configuration as it was read: with the places of secrets, and without any. */
export function settings({ portals, appliances, notify, lan, credentials, ...plain }: Configuration): object {
  return {
    ...plain,
    lan: { ...lan, certificate: lan.certificate === null ? null : lan.certificate.files },
    portals: portals.map(({ name, baseUrl, frontendUrl, clientId, ca, replay, redirect }) => {
      const where = URL.canParse(redirect) ? new URL(redirect).origin : redirect;
      return { name, baseUrl, frontendUrl, clientId, cas: ca.length, replay, redirect: where };
    }),
    appliances: appliances.map(({ name, clientId, scope, portal, credentials: { kind } }) => {
      return { name, clientId, scope, portal, credentials: kind };
    }),
    notify: {
      command: notify.command?.[0] ?? null,
      webhook: notify.webhook === null ? null : new URL(notify.webhook.reveal()).origin,
    },
    credentials: credentials ?? null,
  };
}

/** Variables whose values can't be secret. */
const HARMLESS = /^LATCHKEY_(CONFIG|BOOT_ID|(LAN|HUB|PAIRING|METRICS)_\w+)$/;

/** The variables of the environment that are for Latchkey, by name; values only where they can't be secret. */
export function environment(env: NodeJS.ProcessEnv): Record<string, string> {
  const names = Object.keys(env).filter((name) => name.startsWith('LATCHKEY_'));
  return Object.fromEntries(
    names.sort().map((name) => [name, HARMLESS.test(name) ? (env[name] ?? '') : 'set, not shown']),
  );
}
