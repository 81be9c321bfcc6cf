import { GROUPS, type Group, type GroupSituation, type Situation } from '../situation.ts';
import { CLIENT_AUTHENTICATION } from './client-authentication.ts';
import { CODE_FLOW } from './code-flow.ts';
import { DEVICE_FLOW } from './device-flow.ts';
import { ENDS } from './ends.ts';
import { FAULTS } from './faults.ts';
import { MCP } from './mcp.ts';
import { OPENID } from './openid.ts';
import { ROTATION } from './rotation.ts';
import { STORAGE } from './storage.ts';

const BY_GROUP: Readonly<Record<Group, readonly GroupSituation[]>> = {
  rotation: ROTATION,
  faults: FAULTS,
  ends: ENDS,
  storage: STORAGE,
  'client-authentication': CLIENT_AUTHENTICATION,
  'code-flow': CODE_FLOW,
  openid: OPENID,
  'device-flow': DEVICE_FLOW,
  mcp: MCP,
};

/** All situations, in the order of the report. */
export const SITUATIONS: readonly Situation[] = GROUPS.flatMap((group) =>
  BY_GROUP[group].map((situation) => ({ ...situation, group })),
);

/** The situations of these groups, and those of these names; all if there are none. */
export function selectSituations(only: readonly string[]): readonly Situation[] {
  return only.length === 0
    ? SITUATIONS
    : SITUATIONS.filter(({ name, group }) => only.includes(name) || only.includes(group));
}

/** What `--only` may name. */
export const SELECTIONS: readonly string[] = [...GROUPS, ...SITUATIONS.map(({ name }) => name)];
