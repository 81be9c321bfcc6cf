import { html } from 'ghtml';
import { Failure } from '../../core/failure.ts';
import type { Named } from '../../core/name.ts';
import type { PageSession } from '../../core/setup-access.ts';
import {
  createIdempotencyKey,
  fieldErrorsFor,
  readIdempotencyKey,
  validateLogin,
} from '../add-appliance/add-appliance.ts';
import type { PageServices } from '../administration-view.ts';
import { renderPortalChoice } from '../appliance/connection-choice.ts';
import { renderTextField } from '../form-field.ts';
import { backLink, csrfForm, type InstallerPage, sendInstallerPage } from '../installer-page.ts';
import type { AuthenticatedRequest, PageContext } from '../page-context.ts';
import { connectionPath } from '../paths.ts';
import type { AuthenticatedRoutes } from '../sign-in/authenticated-routes.ts';

/** The fields of the form, as typed. */
interface ConnectionForm {
  readonly name: string;
  readonly scope: string;
  readonly portal: string;
}

/** Error texts, by field. */
type FieldErrors = Partial<Record<keyof ConnectionForm, string>>;

const EMPTY_FORM: ConnectionForm = { name: '', scope: '', portal: '' };

/** Serves the form that adds a connection for appliances to share. */
export function serveAddConnection(guard: AuthenticatedRoutes, { administration, random, added }: PageServices): void {
  function send(req: AuthenticatedRequest, status: number, key: string, typed: ConnectionForm, problems: FieldErrors) {
    const portals = administration.portals();
    return sendInstallerPage(req, status, addConnectionPage(req.context, req.session, key, portals, typed, problems));
  }

  guard.page('/connections/add', async (req) => {
    // The overview has the clouds to choose from.
    if (administration.portals().length === 0) return req.reply.redirect('/', 303);
    return send(req, 200, createIdempotencyKey(random), EMPTY_FORM, {});
  });

  guard.form('/connections/add', async (submission) => {
    const { form, reply, session, context } = submission;
    const typed: ConnectionForm = {
      name: (form.get('name') ?? '').trim(),
      scope: form.get('scope') ?? '',
      portal: form.get('portal') ?? '',
    };
    const { name, scope, portal } = typed;
    const key = readIdempotencyKey(form) ?? createIdempotencyKey(random);
    const problems = validateLogin(typed, administration.portals(), context.texts);
    if (Object.keys(problems).length > 0) return send(submission, 400, key, typed, problems);
    try {
      const connection = await added.getOrRun(session, key, name, () =>
        submission.administration.addConnection(name, scope || null, portal || null),
      );
      return reply.redirect(connectionPath(connection.name), 303);
    } catch (error) {
      const problem = error instanceof Failure ? fieldErrorsFor(error.code, context.texts) : null;
      if (problem === null) throw error;
      return send(submission, 400, key, typed, problem);
    }
  });
}

/**
 * The form that adds a connection.
 * @param key the idempotency key: a form that is sent twice adds one connection
 * @param portals the configured ones, the default one first
 */
function addConnectionPage(
  { texts }: PageContext,
  session: PageSession,
  key: string,
  portals: readonly Named[],
  typed: ConnectionForm,
  problems: FieldErrors,
): InstallerPage {
  const { adding, addConnection } = texts;
  const isScopeFocused = problems.scope !== undefined && problems.name === undefined;
  const name = { id: 'name', label: adding.name, hint: addConnection.nameHint, problem: problems.name };
  const scope = { id: 'scope', label: adding.scope, hint: addConnection.scopeHint, problem: problems.scope };
  const portal = { id: 'portal', label: adding.portal, hint: null, problem: problems.portal };
  const content = html`<input type="hidden" name="form" value="${key}">
!${renderTextField(name, typed.name, !isScopeFocused)}
!${renderPortalChoice(portal, portals, typed.portal, texts)}
!${renderTextField(scope, typed.scope, isScopeFocused)}
<div class="actions"><button class="primary" id="submit">${adding.add}</button></div>`;
  return {
    title: addConnection.title,
    narrow: true,
    body: html`!${backLink('/', texts.installer.overview)}
<h1>${addConnection.title}</h1>
<p>${addConnection.text}</p>
!${csrfForm(session, '/connections/add', content, 'fields')}`,
  };
}
