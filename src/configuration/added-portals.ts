import * as v from 'valibot';
import { Secret } from '../core/secret.ts';
import { withoutSurroundingSpace } from '../system/secret-file.ts';
import { trimPortal } from './configuration.ts';
import type { RawTable } from './environment-overrides.ts';
import { type PortalConfiguration, readPortals } from './portals.ts';
import { completePortals } from './presets.ts';
import { validateConfiguration } from './validation.ts';

/**
 * The portals that people have added, by name: each as its table `[portals.NAME]`, but with the client secret itself as
 * `client_secret`.
 */
export type PortalTables = Readonly<Record<string, RawTable>>;

const storedPortals = v.pipe(v.string(), v.parseJson(), v.record(v.string(), v.record(v.string(), v.unknown())));

/** Parses what {@link serializePortalTables} has made. @returns no portals if it can't be parsed */
export function parsePortalTables(text: string | null): PortalTables {
  const parsed = v.safeParse(storedPortals, text);
  return parsed.success ? parsed.output : {};
}

export function serializePortalTables(portals: PortalTables): string {
  return JSON.stringify(portals);
}

/** A portal as it is stored. White space around what people paste is removed. @param clientSecret null for none */
export function addedPortal(keys: RawTable, clientSecret: Secret | null): RawTable {
  const secret = clientSecret && withoutSurroundingSpace(clientSecret.reveal());
  return { ...trimPortal(keys), ...(secret && { client_secret: secret }) };
}

/** The keys that name files of this machine, which another one would not have after a restore. */
const FILE_KEYS = ['client_secret_file', 'client_key_file', 'ca_file'];
const FILE_PROBLEM = 'names a file, so only a portal of the configuration can have it';

/**
 * Validates added portals by the rules of the configuration.
 * @returns the valid ones, and the problem of each wrong key, such as `portals.home.client_id`
 */
export async function readAddedPortals(
  added: PortalTables,
): Promise<{ readonly portals: readonly PortalConfiguration[]; readonly problems: ReadonlyMap<string, string> }> {
  const problems = new Map<string, string>();
  const report = (key: string, problem: string) => {
    const named = key.replace(/\.client_secret_file$/, '.client_secret');
    if (!problems.has(named)) problems.set(named, problem);
  };
  const secrets = new Map<string, Secret>();
  const tables = Object.entries(added).map(([name, { client_secret: secret, ...keys }]): [string, RawTable] => {
    for (const key of FILE_KEYS) if (Object.hasOwn(keys, key)) problems.set(`portals.${name}.${key}`, FILE_PROBLEM);
    if (typeof secret !== 'string') return [name, keys];
    const place = `added:${name}`;
    secrets.set(place, new Secret(secret));
    return [name, { ...keys, client_secret_file: place }];
  });
  const { raw, used } = await completePortals({ portals: Object.fromEntries(tables) }, report);
  const { usable, problems: invalid } = validateConfiguration(raw);
  for (const [key, problem] of invalid) report(key, problem);
  const portals = await readPortals(usable.portals, {
    directory: '/',
    credentialsDirectory: undefined,
    async readSecret(_key, place) {
      const secret = secrets.get(place);
      if (secret === undefined) throw new Error(FILE_PROBLEM);
      if (/[\r\n]/.test(secret.reveal())) throw new Error('must be on one line');
      return secret;
    },
    presets: used,
    invalidKeys: new Set(invalid.keys()),
    report,
  });
  const hasProblem = (name: string) => [...problems.keys()].some((key) => key.startsWith(`portals.${name}.`));
  return {
    portals: portals.flatMap(({ secretFile: _, ...portal }): PortalConfiguration[] =>
      hasProblem(portal.name) ? [] : [{ ...portal, appliedBy: 'enter_again' }],
    ),
    problems,
  };
}
