import { html } from 'ghtml';
import type { PageSession } from '../../core/setup-access.ts';
import { backTo, type InstallerPage, sameOriginForm } from '../installer-page.ts';
import type { PageContext } from '../page-context.ts';
import type { Texts } from '../texts/en.ts';

/** What was typed about a new appliance. */
export interface Typed {
  readonly name: string;
  readonly scope: string;
  readonly portal: string;
}

/** What is wrong with it, by field. */
export type FieldProblems = Partial<Record<keyof Typed, string>>;

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
