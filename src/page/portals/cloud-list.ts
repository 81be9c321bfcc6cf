import { html } from 'ghtml';
import type { CloudChoice } from '../../core/portals/portal-administration.ts';
import { addPortalPath } from '../paths.ts';
import type { Texts } from '../texts/en.ts';

/** The kinds of portals without a preset, as the form's address names them. */
export const HELPER_PORTAL = 'helper';
export const OTHER_CLOUD = 'other';

/** The clouds to choose from, those with a preset by their titles, each with a link to its form. @returns HTML */
export function renderCloudList({ portal: texts, language }: Texts, clouds: readonly CloudChoice[]): string {
  const item = (cloud: string, title: string, summary: string) => html`<li class="card">
<h3><a href="${addPortalPath(cloud)}" id="cloud-${cloud}">${title}</a></h3><p class="quiet">${summary}</p></li>`;
  const sorted = clouds.toSorted((a, b) => a.title.localeCompare(b.title));
  const known = sorted.map(({ name, title, texts: own }) => item(name, title, own[language].summary));
  return html`<ul class="cards">!${item(HELPER_PORTAL, texts.helper, texts.helperText)}!${known}
!${item(OTHER_CLOUD, texts.other, texts.otherText)}</ul>
<p class="quiet">${texts.untried}</p>`;
}
