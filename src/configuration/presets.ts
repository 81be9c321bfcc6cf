import type { Cloud, CloudProtocol } from '../clouds/cloud.ts';
import type { ReadAnswer } from '../clouds/odd-answers.ts';
import { didYouMean, nearestName } from '../system/did-you-mean.ts';
import { isTable, PORTAL_KEYS, type RawTable } from './environment-overrides.ts';

/** A preset that a portal uses. */
export interface UsedPreset {
  readonly preset: Cloud;
  /** The protocol of its cloud, with the portal's variables filled in. */
  readonly protocol: CloudProtocol;
  /** Reads the odd answers of its cloud; null if it has none. */
  readonly readAnswer: ReadAnswer | null;
}

/** Only an ordinary OAuth 2.0 server has one of these. */
const AUTHORIZATION_SERVER_KEYS = [
  'issuer',
  'authorization_endpoint',
  'token_endpoint',
  'device_authorization_endpoint',
];

/** A configuration whose portals are complete. */
interface CompletedConfiguration {
  /** Each portal has its type, and what its preset fills in. One with an error in its preset is left out. */
  readonly raw: RawTable;
  /** The presets of the portals, by the portals' names. */
  readonly used: ReadonlyMap<string, UsedPreset>;
}

/**
 * Fills each table `[portals.NAME]` in from its preset, and its type.
 * @param report called with the key of each error and its problem
 */
export async function completePortals(
  raw: RawTable,
  report: (key: string, problem: string) => void,
): Promise<CompletedConfiguration> {
  const { portals } = raw;
  if (!isTable(portals)) return { raw, used: new Map() };
  const used = new Map<string, UsedPreset>();
  const needsPreset = Object.values(portals).some((table) => isTable(table) && table['preset'] !== undefined);
  // Few hubs need the catalogue, and it takes memory.
  const catalogue = needsPreset ? await loadCatalogue() : null;
  const completed = Object.entries(portals).flatMap(([name, table]): [string, unknown][] => {
    if (!isTable(table)) return [[name, table]];
    if (table['preset'] === undefined || catalogue === null) {
      // A misspelt key tells the kind, too: the message is then about that key, not about those of the other kind.
      const meant = Object.keys(table).map((key) => nearestName(key, Object.keys(PORTAL_KEYS)));
      const isOAuth2 = AUTHORIZATION_SERVER_KEYS.some((key) => meant.includes(key));
      return [[name, { type: isOAuth2 ? 'oauth2' : 'helper', ...table }]];
    }
    const key = `portals.${name}`;
    const preset = typeof table['preset'] === 'string' ? catalogue.findCloud(table['preset']) : undefined;
    if (preset === undefined) {
      report(`${key}.preset`, describeUnknown(table['preset'], catalogue.CLOUD_NAMES));
      return [];
    }
    if ((table['type'] ?? 'oauth2') !== 'oauth2') {
      report(`${key}.type`, 'must be "oauth2" for a portal with a preset, or left out');
      return [];
    }
    const resolved = catalogue.resolvePreset(preset, table);
    if (resolved.ok) {
      const readAnswer = catalogue.ODD_ANSWERS[preset.name] ?? null;
      used.set(name, { preset, protocol: resolved.protocol, readAnswer });
      return [[name, resolved.table]];
    }
    for (const [member, problem] of resolved.problems) report(`${key}.${member}`, problem);
    return [];
  });
  return { raw: { ...raw, portals: Object.fromEntries(completed) }, used };
}

async function loadCatalogue() {
  const [{ findCloud, CLOUD_NAMES }, { ODD_ANSWERS }, { resolvePreset }] = await Promise.all([
    import('../clouds/catalogue.ts'),
    import('../clouds/odd-answers.ts'),
    import('./resolve-preset.ts'),
  ]);
  return { findCloud, CLOUD_NAMES, ODD_ANSWERS, resolvePreset };
}

function describeUnknown(name: unknown, names: readonly string[]): string {
  const suggestion = typeof name === 'string' ? didYouMean(name, names) : '';
  return `must be the name of a preset${suggestion || `: ${names.join(', ')}`} ("latchkey portals --catalogue" describes them)`;
}
