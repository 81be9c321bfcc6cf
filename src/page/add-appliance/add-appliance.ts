import { html } from 'ghtml';
import type { Administration } from '../../core/administration.ts';
import { checkName, checkScope } from '../../core/appliances/appliance.ts';
import { Failure, type FailureCode } from '../../core/failure.ts';
import type { Random } from '../../core/random.ts';
import type { PageSession } from '../../core/setup-access.ts';
import { sendFailure } from '../failures.ts';
import { backTo, type InstallerPage, sameOriginForm, sendInstallerPage } from '../installer-page.ts';
import type { PageContext } from '../page-context.ts';
import { credentialsPath } from '../paths.ts';
import type { Guard, SignedIn } from '../sign-in/guard.ts';
import type { Texts } from '../texts/en.ts';
import type { ShownCredentials } from './shown-credentials.ts';

/** What it takes to make credentials and to show them. */
export interface CredentialsOptions {
  readonly administration: Administration;
  readonly random: Random;
  readonly shown: ShownCredentials;
}

/** Adding an appliance: the form, and what becomes of it. */
export function serveAddAppliance(guard: Guard, { administration, random, shown }: CredentialsOptions): void {
  function send(asked: SignedIn, status: number, token: string, typed: Typed, problems: FieldProblems) {
    const portals = administration.portals();
    return sendInstallerPage(
      asked,
      status,
      addAppliancePage(asked.context, asked.session, token, portals, typed, problems),
    );
  }

  guard.page('/appliances/add', async (asked) => send(asked, 200, formToken(random), NOTHING, {}));

  guard.form('/appliances/add', async (sent) => {
    const { form, reply, session, context } = sent;
    const typed: Typed = {
      name: (form.get('name') ?? '').trim(),
      scope: form.get('scope') ?? '',
      portal: form.get('portal') ?? '',
    };
    const token = tokenOf(form) ?? formToken(random);
    const problems = problemsOf(typed, administration.portals(), context.texts);
    if (Object.keys(problems).length > 0) return send(sent, 400, token, typed, problems);
    try {
      const { name, scope, portal } = typed;
      await shown.once(session, token, name, async () => ({
        issued: await administration.addAppliance(name, scope || null, portal || null),
        isNew: true,
      }));
      return reply.redirect(credentialsPath(token, name), 303);
    } catch (error) {
      const problem = error instanceof Failure ? fieldOf(error.code, context.texts) : null;
      return problem === null ? sendFailure(sent, typed.name, error) : send(sent, 400, token, typed, problem);
    }
  });
}

/** A token for a form that makes credentials: however often it is sent, they are made once. */
export function formToken(random: Random): string {
  return random.token(16);
}

/** The token that came with a form; null where it has none that the hub could have given it. */
export function tokenOf(form: ReadonlyMap<string, string>): string | null {
  const token = form.get('form') ?? '';
  return /^[\w-]{22}$/.test(token) ? token : null;
}

const NOTHING: Typed = { name: '', scope: '', portal: '' };

function problemsOf({ name, scope, portal }: Typed, portals: readonly string[], { adding }: Texts): FieldProblems {
  return {
    ...(name === '' && { name: adding.nameMissing }),
    ...(name !== '' && !passes(() => checkName(name)) && { name: adding.nameWrong }),
    ...(!passes(() => checkScope(scope)) && { scope: adding.scopeWrong }),
    ...(portal !== '' && !portals.includes(portal) && { portal: adding.portalWrong }),
  };
}

function passes(check: () => unknown): boolean {
  try {
    check();
    return true;
  } catch (error) {
    if (error instanceof Failure) return false;
    throw error;
  }
}

/** What the hub found wrong, at the field that it is about; null where it is about none. */
function fieldOf(code: FailureCode, { adding }: Texts): FieldProblems | null {
  switch (code) {
    case 'appliance_exists':
      return { name: adding.nameTaken };
    case 'name_invalid':
      return { name: adding.nameWrong };
    case 'scope_invalid':
      return { scope: adding.scopeWrong };
    case 'portal_unknown':
      return { portal: adding.portalWrong };
    default:
      return null;
  }
}

/** What was typed about a new appliance. */
interface Typed {
  readonly name: string;
  readonly scope: string;
  readonly portal: string;
}

/** What is wrong with it, by field. */
type FieldProblems = Partial<Record<keyof Typed, string>>;

/**
 * The form that adds an appliance.
 * @param token of this form: sent twice, it adds one appliance
 * @param portals the names of the configured ones, the default one first
 */
export function addAppliancePage(
  { texts }: PageContext,
  session: PageSession,
  token: string,
  portals: readonly string[],
  typed: Typed,
  problems: FieldProblems,
): InstallerPage {
  const { adding } = texts;
  const focused = problems.scope !== undefined && problems.name === undefined ? 'scope' : 'name';
  const input = (id: 'name' | 'scope', label: string, hint: string, longest: number) =>
    field(
      id,
      label,
      hint,
      problems[id],
      (attributes) =>
        html`<input id="${id}" name="${id}" value="${typed[id]}" maxlength="${longest}" autocomplete="off" autocapitalize="none" autocorrect="off" spellcheck="false"!${attributes}!${id === focused ? ' autofocus' : ''}>`,
    );
  const content = html`<input type="hidden" name="form" value="${token}">
!${input('name', adding.name, adding.nameHint, 63)}
!${input('scope', adding.scope, adding.scopeHint, 1000)}
!${portals.length > 1 ? portalField(adding, portals, typed.portal, problems.portal) : ''}
<div class="actions"><button class="primary" id="submit">${adding.add}</button></div>`;
  return {
    title: adding.title,
    narrow: true,
    body: html`!${backTo('/', texts.installer.overview)}
<h1>${adding.title}</h1>
!${sameOriginForm(session, '/appliances/add', content, 'fields')}`,
  };
}

function portalField(
  adding: Texts['adding'],
  portals: readonly string[],
  chosen: string,
  problem: string | undefined,
): string {
  const options = portals.map(
    (name) => html`<option value="${name}"!${name === chosen ? ' selected' : ''}>${name}</option>`,
  );
  return field(
    'portal',
    adding.portal,
    null,
    problem,
    (attributes) => html`<select id="portal" name="portal"!${attributes}>!${options}</select>`,
  );
}

/** @param control the HTML of the control, given its attributes */
function field(
  id: string,
  label: string,
  hint: string | null,
  problem: string | undefined,
  control: (attributes: string) => string,
): string {
  const told = [...(problem === undefined ? [] : [`${id}-problem`]), ...(hint === null ? [] : [`${id}-hint`])].join(
    ' ',
  );
  const described = told === '' ? '' : ` aria-describedby="${told}"`;
  return html`<div class="field"><label for="${id}">${label}</label>
!${control(described + (problem === undefined ? '' : ' aria-invalid="true"'))}
!${problem === undefined ? '' : html`<p class="problem" id="${id}-problem">${problem}</p>`}
!${hint === null ? '' : html`<p class="hint" id="${id}-hint">${hint}</p>`}</div>`;
}
