import type { FastifyRequest } from 'fastify';
import { html } from 'ghtml';
import type { Clock } from '../../core/clock.ts';
import type { BrowserSession, PageSession, SetupAccess, SignedInBrowser } from '../../core/setup-access.ts';
import { pastTimeElement } from '../elements.ts';
import { backLink, csrfForm, type InstallerPage, sendInstallerPage } from '../installer-page.ts';
import type { PageContext } from '../page-context.ts';
import type { Texts } from '../texts/en.ts';
import type { AuthenticatedRoutes } from './authenticated-routes.ts';
import { readSessionCookie } from './sign-in-responses.ts';

const BROWSERS_PATH = '/browsers';
/** The command that replaces the setup code. */
export const ROTATE_COMMAND = 'latchkey setup-code --rotate';

/** Serves the list of signed-in browsers, and the forms that sign them out. */
export function serveSignedInBrowsers(
  guard: AuthenticatedRoutes,
  { access, clock }: { readonly access: SetupAccess; readonly clock: Clock },
): void {
  const sessionOf = (request: FastifyRequest): BrowserSession | null =>
    access.findSession(readSessionCookie(request) ?? '');
  guard.page(BROWSERS_PATH, async (req) => {
    const own = sessionOf(req.request);
    const browsers = own === null ? [] : access.listBrowsers(own);
    return sendInstallerPage(req, 200, signedInBrowsersPage(browsers, req.context, req.session, clock.now().wall));
  });
  guard.form(`${BROWSERS_PATH}/sign-out`, async ({ reply, form }) => {
    await access.signOutBrowser(form.get('id') ?? '');
    return reply.redirect(BROWSERS_PATH, 303);
  });
  guard.form(`${BROWSERS_PATH}/sign-out-others`, async ({ request, reply }) => {
    const own = sessionOf(request);
    if (own !== null) await access.signOutOthers(own);
    return reply.redirect(BROWSERS_PATH, 303);
  });
}

function signedInBrowsersPage(
  all: readonly SignedInBrowser[],
  { texts }: PageContext,
  session: PageSession,
  now: number,
): InstallerPage {
  const { browsers, installer } = texts;
  const others = html`<div class="actions">!${csrfForm(session, `${BROWSERS_PATH}/sign-out-others`, html`<button class="danger" id="sign-out-others">${browsers.signOutOthers}</button>`)}</div>`;
  return {
    title: browsers.heading,
    now,
    narrow: true,
    body: html`!${backLink('/', installer.overview)}
<h1>${browsers.heading}</h1>
<ul class="cards">!${all.map((entry, index) => renderBrowserCard(texts, session, entry, index, now))}</ul>
!${all.length > 1 ? others : ''}
<p class="hint">${browsers.intro}</p>
<p><code>${ROTATE_COMMAND}</code></p>`,
  };
}

function renderBrowserCard(
  texts: Texts,
  session: PageSession,
  entry: SignedInBrowser,
  index: number,
  now: number,
): string {
  const { browsers } = texts;
  const { id, browser, address, signedInAt, lastSeenAt, isCurrent } = entry;
  const lastSeen = lastSeenAt === null ? html`${browsers.notSeenSinceStart}` : pastTimeElement(texts, lastSeenAt, now);
  const signOut = html`<input type="hidden" name="id" value="${id}"><button id="sign-out-${index}" aria-describedby="browser-${index}">${browsers.signOut}</button>`;
  return html`<li class="card"><h2 id="browser-${index}">${browser ?? browsers.unknown}</h2>
!${isCurrent ? html`<p><strong>${browsers.thisBrowser}</strong></p>` : ''}
<dl class="facts"><div><dt>${browsers.since}</dt><dd>!${pastTimeElement(texts, signedInAt, now)}</dd></div>
<div><dt>${browsers.lastSeen}</dt><dd>!${lastSeen}</dd></div>
<div><dt>${browsers.address}</dt><dd>${address}</dd></div></dl>
!${isCurrent ? '' : html`<div class="actions">!${csrfForm(session, `${BROWSERS_PATH}/sign-out`, signOut)}</div>`}</li>`;
}
