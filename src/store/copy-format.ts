import * as v from 'valibot';
import { checkName } from '../core/appliance.ts';
import { Failure } from '../core/failure.ts';
import { Secret } from '../core/secret.ts';
import type { StateCopy } from '../core/state-copy.ts';

/** Grows when a copy can no longer be read by a Latchkey that knows the one before. */
const FORMAT = 1;

const scope = v.nullable(v.string());
const instant = v.object({ boot: v.string(), uptime: v.number(), wall: v.number() });
const secret = v.pipe(
  v.string(),
  v.transform((value) => new Secret(value)),
);
const doubt = v.object({ kind: v.exactOptional(v.literal('copy')), lostAt: instant, sends: v.number() });
const content = v.object({
  format: v.literal(FORMAT),
  made: v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(8_640_000_000_000_000)),
  settings: v.record(v.string(), v.string()),
  appliances: v.array(
    v.object({
      id: v.pipe(v.string(), v.uuid()),
      name: v.pipe(v.string(), v.check(isName)),
      scope,
      portal: v.string(),
      secretHash: v.string(),
    }),
  ),
  grants: v.array(
    v.object({
      appliance: v.string(),
      generation: v.pipe(v.number(), v.integer(), v.minValue(1)),
      accessToken: secret,
      refreshToken: secret,
      scope,
      lifetime: v.number(),
      obtained: instant,
      portalTime: v.nullable(v.number()),
      doubt: v.nullable(doubt),
      refused: v.nullable(instant),
    }),
  ),
});

/** The copy as JSON, with every secret in the clear: it is to be encrypted. */
export function writeCopy({ made, settings, appliances, grants }: StateCopy): string {
  const revealed = grants.map((grant) => ({
    ...grant,
    accessToken: grant.accessToken.reveal(),
    refreshToken: grant.refreshToken.reveal(),
  }));
  return JSON.stringify({ format: FORMAT, made, settings: Object.fromEntries(settings), appliances, grants: revealed });
}

/** @throws Failure `copy_unusable` */
export function readCopy(text: string): StateCopy {
  const raw = parseJson(text);
  const { format } = v.parse(v.fallback(v.object({ format: v.number() }), { format: 0 }), raw);
  if (format > FORMAT) {
    throw new Failure(
      'copy_unusable',
      `the copy has format ${format}, made by a newer Latchkey; this one knows formats up to ${FORMAT}: install the newer version`,
    );
  }
  const parsed = v.safeParse(content, raw);
  if (!parsed.success) throw new Failure('copy_unusable', 'the copy was opened, and what is in it makes no sense');
  const { made, settings, appliances, grants } = parsed.output;
  const known = new Set(appliances.map(({ id }) => id));
  return {
    made,
    settings: new Map(Object.entries(settings)),
    appliances,
    grants: grants.filter(({ appliance }) => known.has(appliance)),
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's message may repeat what it found, and that is secret.
    throw new Failure('copy_unusable', 'the copy was opened, and what is in it is no JSON');
  }
}

function isName(name: string): boolean {
  try {
    return checkName(name) === name;
  } catch {
    return false;
  }
}
