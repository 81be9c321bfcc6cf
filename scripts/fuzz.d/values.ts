// The values that requests carry: good ones, and such as an attacker would send.
import { createHmac } from 'node:crypto';
import type { Dice } from './dice.ts';
import type { Facts } from './facts.ts';
import { formOf } from './form.ts';
import { mutated, SPECIAL, soup } from './mutations.ts';

/** Picks the values of one request. */
export class Values {
  readonly dice: Dice;
  readonly facts: Facts;
  /** Every value is a good one, so that what lies behind the checks is reached. */
  readonly good: boolean;

  constructor(dice: Dice, facts: Facts, good: boolean) {
    this.dice = dice;
    this.facts = facts;
    this.good = good;
  }

  client(): string {
    const { dice, facts } = this;
    if (this.good || dice.chance(0.6)) return facts.clientId;
    return dice.of(
      [facts.victimId, facts.clientId.toUpperCase(), '__proto__', '', '..', 'x'.repeat(dice.below(2000)), '%2e%2e'],
      '',
    );
  }

  code(): string {
    const { dice, facts } = this;
    const known = dice.of(facts.codes, '');
    if (this.good || dice.chance(0.5)) return known;
    return dice.of([mutated(dice, known), soup(dice, 60), '', this.state()], '');
  }

  /** One of these tokens, or one like it. */
  token(known: readonly string[]): string {
    const { dice } = this;
    const one = dice.of(known, '');
    if (this.good || dice.chance(0.5)) return one;
    const parts = one.split('.');
    const older = parts.with(Math.min(1, parts.length - 1), String(dice.below(9))).join('.');
    return dice.of([older, mutated(dice, one), [...parts].reverse().join('.'), this.state(), soup(dice, 80), ''], '');
  }

  /** A state: good, or forged in one of the ways that JWT libraries have fallen for. */
  state(): string {
    const { dice, facts } = this;
    const known = dice.of(facts.states, '');
    if (this.good || dice.chance(0.3)) return known;
    const [head = '', payload = '', mac = ''] = known.split('.');
    const wanted = dice.chance(0.5) ? facts.victimPayload : payload;
    const none = base64url(dice.of(NO_ALGORITHM, '{}'));
    const other = base64url(dice.of(OTHER_ALGORITHMS, '{}'));
    const foreign = createHmac('sha256', dice.of(['', 'secret', facts.clientSecret], ''))
      .update(`${head}.${wanted}`)
      .digest('base64url');
    return dice.of(
      [
        `${none}.${wanted}.`,
        `${none}.${wanted}.${mac}`,
        `${head}.${wanted}.${mac}`,
        `${head}.${wanted}.${foreign}`,
        `${other}.${wanted}.${mac}`,
        `${head}.${base64url(dice.of(CLAIMS, ''))}.${mac}`,
        mutated(dice, known),
        known.slice(0, dice.below(known.length)),
        `${known}.${mac}`,
        '..',
        soup(dice, 200),
      ],
      '',
    );
  }

  /** The id inside a state, by which a waiting login is named. */
  stateId(): string {
    const payload = Buffer.from(this.dice.of(this.facts.states, '').split('.')[1] ?? '', 'base64url').toString();
    return /"jti":"([^"]+)"/.exec(payload)?.[1] ?? '';
  }

  form(members: Readonly<Record<string, string>>): string {
    return formOf(this.dice, members, this.good);
  }

  /** An entry of a path or a query: the good one, or something strange. */
  entry(good: string): string {
    return this.good || this.dice.chance(0.3) ? good : this.dice.of(SPECIAL, '');
  }
}

const NO_ALGORITHM = ['{"alg":"none"}', '{"alg":"None","typ":"JWT"}', '{"alg":"nOnE"}', '{}', 'null'];

const OTHER_ALGORITHMS = [
  '{"alg":"RS256"}',
  '{"alg":"HS512"}',
  '{"alg":"HS256","crit":["x"]}',
  '{"alg":"HS256","jwk":{"kty":"oct","k":"AA"}}',
  '{"alg":"HS256","kid":"../../dev/null"}',
  '{"alg":["HS256"]}',
];

const CLAIMS = ['{"jti":null}', '[]', '1', '{"jti":"__proto__","aud":["a"],"exp":1e400}', '{"exp":"x"}', ''];

function base64url(text: string): string {
  return Buffer.from(text).toString('base64url');
}
