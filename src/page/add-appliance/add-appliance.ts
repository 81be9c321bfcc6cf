import { html } from 'ghtml';
import type { Administration } from '../../core/administration.ts';
import { checkApplianceName, checkScope } from '../../core/appliances/appliance.ts';
import { Failure, type FailureCode } from '../../core/failure.ts';
import type { Random } from '../../core/random.ts';
import type { PageSession } from '../../core/setup-access.ts';
import { sendFailure } from '../failures.ts';
import { backLink, csrfForm, type InstallerPage, sendInstallerPage } from '../installer-page.ts';
import type { PageContext } from '../page-context.ts';
import { credentialsPath } from '../paths.ts';
import type { AuthenticatedRequest, AuthenticatedRoutes } from '../sign-in/authenticated-routes.ts';
import type { Texts } from '../texts/en.ts';
import type { CredentialsCache } from './credentials-cache.ts';

/** What the pages that issue and show credentials need. */
export interface CredentialPagesOptions {
  readonly administration: Administration;
  readonly random: Random;
  readonly cache: CredentialsCache;
}

/** Serves the form that adds an appliance. */
export function serveAddAppliance(
  guard: AuthenticatedRoutes,
  { administration, random, cache }: CredentialPagesOptions,
): void {
  function send(req: AuthenticatedRequest, status: number, token: string, typed: ApplianceForm, problems: FieldErrors) {
    const portals = administration.portals();
    return sendInstallerPage(req, status, addAppliancePage(req.context, req.session, token, portals, typed, problems));
  }

  guard.page('/appliances/add', async (req) => send(req, 200, createIdempotencyKey(random), EMPTY_FORM, {}));

  guard.form('/appliances/add', async (submission) => {
    const { form, reply, session, context } = submission;
    const typed: ApplianceForm = {
      name: (form.get('name') ?? '').trim(),
      scope: form.get('scope') ?? '',
      portal: form.get('portal') ?? '',
    };
    const token = readIdempotencyKey(form) ?? createIdempotencyKey(random);
    const problems = validateForm(typed, administration.portals(), context.texts);
    if (Object.keys(problems).length > 0) return send(submission, 400, token, typed, problems);
    try {
      const { name, scope, portal } = typed;
      await cache.getOrIssue(session, token, name, async () => ({
        credentials: await administration.addAppliance(name, scope || null, portal || null),
        isNewAppliance: true,
      }));
      return reply.redirect(credentialsPath(token, name), 303);
    } catch (error) {
      const problem = error instanceof Failure ? fieldErrorsFor(error.code, context.texts) : null;
      return problem === null
        ? sendFailure(submission, typed.name, error)
        : send(submission, 400, token, typed, problem);
    }
  });
}

/** A key for a form that issues credentials: the hub issues them once, however often the form is sent. */
export function createIdempotencyKey(random: Random): string {
  return random.token(16);
}

/** The idempotency key of a form; null if it is missing or malformed. */
export function readIdempotencyKey(form: ReadonlyMap<string, string>): string | null {
  const token = form.get('form') ?? '';
  return /^[\w-]{22}$/.test(token) ? token : null;
}

const EMPTY_FORM: ApplianceForm = { name: '', scope: '', portal: '' };

function validateForm(
  { name, scope, portal }: ApplianceForm,
  portals: readonly string[],
  { adding }: Texts,
): FieldErrors {
  return {
    ...(name === '' && { name: adding.nameMissing }),
    ...(name !== '' && !isValid(() => checkApplianceName(name)) && { name: adding.nameInvalid }),
    ...(!isValid(() => checkScope(scope)) && { scope: adding.scopeInvalid }),
    ...(portal !== '' && !portals.includes(portal) && { portal: adding.portalUnknown }),
  };
}

function isValid(check: () => unknown): boolean {
  try {
    check();
    return true;
  } catch (error) {
    if (error instanceof Failure) return false;
    throw error;
  }
}

/** The error of a failure, at the field that caused it; null if no field did. */
function fieldErrorsFor(code: FailureCode, { adding }: Texts): FieldErrors | null {
  switch (code) {
    case 'appliance_exists':
      return { name: adding.nameTaken };
    case 'name_invalid':
      return { name: adding.nameInvalid };
    case 'scope_invalid':
      return { scope: adding.scopeInvalid };
    case 'portal_unknown':
      return { portal: adding.portalUnknown };
    default:
      return null;
  }
}

/** The fields of the form, as typed. */
interface ApplianceForm {
  readonly name: string;
  readonly scope: string;
  readonly portal: string;
}

/** Error texts, by field. */
type FieldErrors = Partial<Record<keyof ApplianceForm, string>>;

/**
 * The form that adds an appliance.
 * @param token the idempotency key: a form that is sent twice adds one appliance
 * @param portals the names of the configured portals, the default one first
 */
export function addAppliancePage(
  { texts }: PageContext,
  session: PageSession,
  token: string,
  portals: readonly string[],
  typed: ApplianceForm,
  problems: FieldErrors,
): InstallerPage {
  const { adding } = texts;
  const focused = problems.scope !== undefined && problems.name === undefined ? 'scope' : 'name';
  const input = (id: 'name' | 'scope', label: string, hint: string, maxLength: number) =>
    renderField(
      id,
      label,
      hint,
      problems[id],
      (attributes) =>
        html`<input id="${id}" name="${id}" value="${typed[id]}" maxlength="${maxLength}" autocomplete="off" autocapitalize="none" autocorrect="off" spellcheck="false"!${attributes}!${id === focused ? ' autofocus' : ''}>`,
    );
  const content = html`<input type="hidden" name="form" value="${token}">
!${input('name', adding.name, adding.nameHint, 63)}
!${input('scope', adding.scope, adding.scopeHint, 1000)}
!${portals.length > 1 ? renderPortalField(adding, portals, typed.portal, problems.portal) : ''}
<div class="actions"><button class="primary" id="submit">${adding.add}</button></div>`;
  return {
    title: adding.title,
    narrow: true,
    body: html`!${backLink('/', texts.installer.overview)}
<h1>${adding.title}</h1>
!${csrfForm(session, '/appliances/add', content, 'fields')}`,
  };
}

function renderPortalField(
  adding: Texts['adding'],
  portals: readonly string[],
  selected: string,
  problem: string | undefined,
): string {
  const options = portals.map(
    (name) => html`<option value="${name}"!${name === selected ? ' selected' : ''}>${name}</option>`,
  );
  return renderField(
    'portal',
    adding.portal,
    null,
    problem,
    (attributes) => html`<select id="portal" name="portal"!${attributes}>!${options}</select>`,
  );
}

/** @param control makes the control's HTML from its attributes */
function renderField(
  id: string,
  label: string,
  hint: string | null,
  problem: string | undefined,
  control: (attributes: string) => string,
): string {
  const descriptionIds = [
    ...(problem === undefined ? [] : [`${id}-problem`]),
    ...(hint === null ? [] : [`${id}-hint`]),
  ].join(' ');
  const describedBy = descriptionIds === '' ? '' : ` aria-describedby="${descriptionIds}"`;
  return html`<div class="field"><label for="${id}">${label}</label>
!${control(describedBy + (problem === undefined ? '' : ' aria-invalid="true"'))}
!${problem === undefined ? '' : html`<p class="problem" id="${id}-problem">${problem}</p>`}
!${hint === null ? '' : html`<p class="hint" id="${id}-hint">${hint}</p>`}</div>`;
}
