import type { FastifyReply, FastifyRequest } from 'fastify';
import { html } from 'ghtml';
import type { PairingDesk } from '../../core/pairings/pairing-desk.ts';
import { appliancePath } from '../appliance/appliance-path.ts';
import { backTo, ownForm, sendInstallerPage } from '../installer-page.ts';
import type { Guard, SignedIn } from '../sign-in/guard.ts';
import { pairingPath } from './pairing-parts.ts';

/** Answers, or says in words why not. */
type Answered = (asked: SignedIn, answer: () => Promise<FastifyReply>) => Promise<FastifyReply>;

/** The label of an appliance as a picture, and where its link leads. */
export function serveLabels(guard: Guard, administration: PairingDesk, answered: Answered): void {
  guard.page('/appliances/:name/label.png', (asked) =>
    answered(asked, async () => {
      const { name, hubName, link, byAddress } = administration.label(nameOf(asked));
      const { caption } = asked.frame.texts.pairing.label;
      // What makes a picture, and the tables of character sets that it brings along, most hubs never need.
      const { labelPicture } = await import('../../system/label-picture.ts');
      return asked.reply
        .headers({
          'cache-control': 'no-store',
          'content-disposition': `inline; filename="latchkey-${name}.png"`,
          // The style is the browser's own, around a picture that is looked at by itself.
          'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
          'cross-origin-resource-policy': 'same-origin',
          'x-content-type-options': 'nosniff',
          'x-frame-options': 'DENY',
        })
        .type('image/png')
        .send(Buffer.from(labelPicture({ name, hubName, caption, link, otherLink: byAddress })));
    }),
  );
  guard.page('/p/:name', (asked) =>
    answered(asked, async () => {
      const { name } = administration.label(nameOf(asked));
      if (!isMeant(asked.request)) return ask(asked, name);
      const id = await administration.joinPairing(name);
      return asked.reply.header('cache-control', 'no-store').redirect(pairingPath(id), 303);
    }),
  );
}

function ask(asked: SignedIn, name: string): FastifyReply {
  const { label: texts } = asked.frame.texts.pairing;
  const heading = texts.heading(name);
  const button = html`<button class="primary" id="go-on">${texts.button}</button>`;
  return sendInstallerPage(asked, 200, {
    title: heading,
    narrow: true,
    body: html`!${backTo(appliancePath(name), name)}<h1>${heading}</h1><p>${texts.text}</p>
!${ownForm(asked.session, appliancePath(name, 'pair'), button)}`,
  });
}

/**
 * Whether a person has opened the label's link, and not another site, or a browser on its own: opening it begins a pairing.
 * Whoever was led here by another site comes a second time from the hub's own address, but from no page of it.
 */
function isMeant({ method, headers, host }: FastifyRequest): boolean {
  if (method !== 'GET' || headers['sec-purpose'] !== undefined || headers['purpose'] !== undefined) return false;
  const site = headers['sec-fetch-site'];
  if (site !== 'same-origin') return site === undefined || site === 'none';
  return URL.parse(headers.referer ?? '')?.host.toLowerCase() === host.toLowerCase();
}

function nameOf({ request: { params } }: SignedIn): string {
  return typeof params === 'object' && params !== null && 'name' in params ? String(params.name) : '';
}
