// The values that requests to a hub carry: good ones, and such as an attacker would send.
import type { Dice } from '../dice.ts';
import { formOf } from '../form.ts';
import { mutated, SPECIAL, soup } from '../mutations.ts';
import { goodAssertion, JWT_BEARER, oddAssertion } from './assertions.ts';
import type { Credentials, HubFacts } from './facts.ts';

type Members = Readonly<Record<string, string>>;

/** How a request says who sends it. */
export interface Proof {
  readonly heads: readonly string[];
  readonly members: Members;
  /** No hub may believe it. */
  readonly forged: boolean;
}

/** Picks the values of one request. */
export class HubValues {
  readonly dice: Dice;
  readonly facts: HubFacts;
  readonly good: boolean;

  constructor(dice: Dice, facts: HubFacts, good: boolean) {
    this.dice = dice;
    this.facts = facts;
    this.good = good;
  }

  /** One of these, or one like it. */
  one(known: readonly string[]): string {
    const { dice, facts } = this;
    const one = dice.of(known, '');
    if (this.good || dice.chance(0.5)) return one;
    const others = [facts.accessTokens, facts.refreshTokens, facts.deviceCodes, facts.userCodes, facts.nonces];
    return dice.of([mutated(dice, one), dice.of(dice.of(others, []), ''), soup(dice, 120), '', `${one}${one}`], '');
  }

  /** The client authentication of one of these appliances, or of the one that signs. */
  proof(appliances: readonly Credentials[]): Proof {
    const { dice, facts } = this;
    // The hub remembers so many assertions of one appliance, and then takes none for a minute.
    if (dice.chance(this.good ? 0.03 : 0.15)) return this.#assertion();
    const chosen = dice.of<Credentials>(appliances, facts.own);
    const wrong = !this.good && dice.chance(0.3);
    const { id, secret } = wrong ? this.#wrong(chosen) : chosen;
    const forged = wrong && (id !== chosen.id || secret !== chosen.secret);
    if (!this.good && dice.chance(0.03)) {
      return { heads: [basic(id, secret)], members: { client_id: id, client_secret: secret }, forged };
    }
    if (dice.chance(0.5)) return { heads: [], members: { client_id: id, client_secret: secret }, forged };
    const members: Members = !this.good && dice.chance(0.1) ? { client_id: this.#other() } : {};
    return { heads: [basic(id, secret)], members, forged };
  }

  #assertion(): Proof {
    const { dice, facts, good } = this;
    const type = good || dice.chance(0.9) ? JWT_BEARER : dice.of([...SPECIAL, 'urn:ietf:params:oauth:jwt'], '');
    const odd = !good && dice.chance(0.8);
    const { text, forged } = odd ? oddAssertion(dice, facts) : { text: goodAssertion(dice, facts), forged: false };
    const more: Members = good || dice.chance(0.8) ? {} : { client_id: this.#other(), client_secret: soup(dice, 50) };
    return { heads: [], members: { client_assertion_type: type, client_assertion: text, ...more }, forged };
  }

  #wrong({ id, secret }: Credentials): Credentials {
    const { dice, facts } = this;
    return dice.of<Credentials>(
      [
        { id, secret: mutated(dice, secret) },
        { id, secret: '' },
        { id: facts.victimId, secret },
        { id: facts.victimId, secret: soup(dice, 60) },
        { id: facts.keyed.id, secret: facts.keyed.publicKey },
        { id: id.toUpperCase(), secret },
        { id: this.#other(), secret: soup(dice, 300) },
        facts.waiting,
      ],
      { id, secret },
    );
  }

  #other(): string {
    const { dice, facts } = this;
    return dice.of(['', '__proto__', facts.victimId, facts.keyed.id, 'x'.repeat(dice.below(3000)), '\r\nX: y'], '');
  }

  /** Those that registered themselves, as far as they got a secret. */
  registered(): readonly Credentials[] {
    return this.facts.registered.map((both) => {
      const [id = '', secret = ''] = both.split(' ');
      return { id, secret };
    });
  }

  form(members: Members): string {
    return formOf(this.dice, members, this.good);
  }

  /** The good text, or something strange. */
  entry(good: string): string {
    return this.good || this.dice.chance(0.5) ? good : this.dice.of(SPECIAL, '');
  }
}

function basic(id: string, secret: string): string {
  const [user, password] = [id, secret].map((text) => encodeURIComponent(text));
  return `Authorization: Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
}
