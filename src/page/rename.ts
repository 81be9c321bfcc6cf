import { html } from 'ghtml';
import { Failure } from '../core/failure.ts';
import type { PageSession } from '../core/setup-access.ts';
import { fieldErrorsFor } from './add-appliance/add-appliance.ts';
import { renderTextField } from './form-field.ts';
import { backLink, csrfForm, sendInstallerPage } from './installer-page.ts';
import type { AuthenticatedRequest } from './page-context.ts';
import type { AuthenticatedRoutes } from './sign-in/authenticated-routes.ts';
import type { Texts } from './texts/en.ts';

/** An appliance or a connection that can get another title. */
interface Renamable {
  readonly title: string;
  /** Its page. */
  readonly path: string;
  rename(title: string): Promise<unknown>;
}

/**
 * Serves the form of {@link renderRenaming}. If the new title is not possible, a page with the form says why.
 * @param find what the path of a request names
 */
export function serveRenaming(
  guard: AuthenticatedRoutes,
  path: string,
  find: (req: AuthenticatedRequest) => Promise<Renamable>,
): void {
  function send(req: AuthenticatedRequest, status: number, named: Renamable, typed: string, problem?: string) {
    const { texts } = req.context;
    return sendInstallerPage(req, status, {
      title: texts.appliance.rename,
      narrow: true,
      body: html`!${backLink(named.path, named.title)}
<h1>${texts.appliance.rename}</h1>
!${renderForm(texts, req.session, named.path, typed, null, problem)}`,
    });
  }

  guard.page(path, async (req) => {
    const named = await find(req);
    return send(req, 200, named, named.title);
  });
  guard.form(path, async (submission) => {
    const named = await find(submission);
    const typed = (submission.form.get('name') ?? '').trim();
    const { texts } = submission.context;
    if (typed === '') return send(submission, 400, named, typed, texts.adding.nameMissing);
    try {
      await named.rename(typed);
      return submission.reply.redirect(named.path, 303);
    } catch (error) {
      const problem = error instanceof Failure ? fieldErrorsFor(error.code, texts)?.name : undefined;
      if (problem === undefined) throw error;
      return send(submission, 400, named, typed, problem);
    }
  });
}

/**
 * The field, folded away, that gives an appliance or a connection another title.
 * @param path its page
 * @param meaning what stays as it is
 * @returns HTML
 */
export function renderRenaming(
  texts: Texts,
  session: PageSession,
  path: string,
  title: string,
  meaning: string,
): string {
  return html`<details id="rename"><summary>${texts.appliance.rename}</summary>
!${renderForm(texts, session, path, title, meaning)}</details>`;
}

function renderForm(
  { adding, appliance }: Texts,
  session: PageSession,
  path: string,
  value: string,
  hint: string | null,
  problem?: string,
): string {
  const field = { id: 'name', label: adding.name, hint, problem };
  const content = html`!${renderTextField(field, value, problem !== undefined)}
<div class="actions"><button id="save-name">${appliance.saveName}</button></div>`;
  return csrfForm(session, `${path.replace(/\/$/, '')}/rename`, content, 'fields');
}
