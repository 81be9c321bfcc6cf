import type { LoginLink } from '../portals/login-link.ts';
import type { Pairing } from './pairing.ts';

/**
 * A pairing as another hub has stored it, with the link objects that this hub has for the same links: a request that
 * is under way names its link by the object.
 */
export function withKnownLinks(pairing: Pairing, known: readonly LoginLink[]): Pairing {
  const { step } = pairing;
  const toKnown = (link: LoginLink) => known.find((other) => linkKey(other) === linkKey(link)) ?? link;
  if (step.kind === 'ended') return pairing;
  const earlier = step.earlier && { earlier: step.earlier.map(toKnown) };
  if (step.kind === 'asking') return { ...pairing, step: { ...step, ...earlier } };
  return { ...pairing, step: { ...step, link: toKnown(step.link), ...earlier } };
}

/** What tells the links of a pairing apart: at some portals, all device codes have the same address. */
export function linkKey(link: { readonly authorizeUrl: string; readonly userCode?: string }): string {
  return `${link.authorizeUrl} ${link.userCode ?? ''}`;
}
