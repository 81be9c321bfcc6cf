import { html } from 'ghtml';
import type { Secret } from '../../core/secret.ts';
import type { SetupAccess } from '../../core/setup-access.ts';
import { backLink, csrfForm, type InstallerPage, redirectTo, sendInstallerPage } from '../installer-page.ts';
import type { PageContext, PageRequest } from '../page-context.ts';
import { SETUP_CODE_PATH } from '../paths.ts';
import type { AuthenticatedRoutes } from './authenticated-routes.ts';
import { browserInfo } from './sign-in.ts';
import { readSessionCookie } from './sign-in-responses.ts';
import { ROTATE_COMMAND } from './signed-in-browsers.ts';

/**
 * Serves the form that shows the setup code to a browser that is signed in. Not to people whom a reverse proxy has signed
 * in: the code would let them in when the proxy no longer does.
 */
export function serveSetupCode(guard: AuthenticatedRoutes, { access }: { readonly access: SetupAccess }): void {
  guard.form(SETUP_CODE_PATH, async (submission) => {
    const { request, context } = submission;
    const code = await access.showSetupCode(readSessionCookie(request) ?? '', browserInfo(request));
    if (code === null) return redirectTo(submission, '/');
    return sendInstallerPage(submission, 200, setupCodePage(code, `https://${request.host}/`, context));
  });
}

/** The button that shows the setup code, and what it is for. @returns HTML */
export function renderSetupCodeForm({ context, session }: Pick<PageRequest, 'context' | 'session'>): string {
  const { setupCode } = context.texts;
  return html`<div class="actions">!${csrfForm(session, SETUP_CODE_PATH, html`<button id="setup-code">${setupCode.show}</button>`)}</div>
<p class="hint">${setupCode.hint}</p>`;
}

/** @param page the address of the hub's page */
function setupCodePage(code: Secret, page: string, { texts }: PageContext): InstallerPage {
  const { setupCode, installer } = texts;
  return {
    title: setupCode.heading,
    narrow: true,
    body: html`!${backLink('/', installer.overview)}
<h1>${setupCode.heading}</h1>
<p class="user-code setup-code">${code.reveal()}</p>
<p>${setupCode.writeDown(page)}</p>
<p class="hint">${setupCode.replace}</p>
<p><code>${ROTATE_COMMAND}</code></p>`,
  };
}
