import type { CloudChoice } from '../../core/portals/portal-administration.ts';
import type { AdministrationView } from '../administration-view.ts';
import type { Texts } from '../texts/en.ts';
import { HELPER_PORTAL, OTHER_CLOUD } from './cloud-list.ts';

/** A field of the form that adds a portal. */
export interface CloudField {
  /** The key of a table `[portals.NAME]`, `client_secret`, or a variable such as `variables.region`. */
  readonly key: string;
  readonly label: string;
  readonly hint: string | null;
  /** What the field contains at first. */
  readonly usual: string;
  readonly isRequired: boolean;
  /** Of an address, what it may consist of; people may leave out its "https://". */
  readonly address?: 'origin' | 'issuer';
  readonly isUuid?: true;
  /** Those to choose from; left out or null for any text. */
  readonly values?: readonly string[] | null;
  /** Whether a person copies it to somewhere else. */
  readonly isCopied?: true;
}

/** The form for one kind of portal. */
export interface CloudForm {
  readonly title: string;
  /** The name that the portal gets, unless another one has it. */
  readonly usualName: string;
  /** The keys that nobody has to enter. */
  readonly keys: Readonly<Record<string, string>>;
  readonly fields: readonly CloudField[];
  readonly registerUrl: string | null;
  /** What to do there. */
  readonly steps: readonly string[];
  /** The redirect address to register; null if there is none, or if it is one of the fields. */
  readonly redirectUri: string | null;
}

/** The form for a cloud of the catalogue, `helper` or `other`; null if there is no such cloud. */
export async function findCloudForm(
  cloud: string,
  administration: Pick<AdministrationView, 'cloudChoices'>,
  texts: Texts,
): Promise<CloudForm | null> {
  const { clouds, redirectUri } = await administration.cloudChoices();
  const { portal } = texts;
  const required = (key: string, label: string, hint: string | null = null) => {
    return { key, label, hint, usual: '', isRequired: true };
  };
  const clientId = required('client_id', portal.clientId);
  const secret = required('client_secret', portal.clientSecret, portal.secretHint);
  const optionalSecret = { ...secret, hint: portal.secretOptionalHint, isRequired: false };
  if (cloud === HELPER_PORTAL) {
    const fields = [
      { ...required('base_url', portal.baseUrl, portal.addressHint), address: 'origin' as const },
      { ...required('frontend_url', portal.frontendUrl, portal.addressHint), address: 'origin' as const },
    ];
    const rest = { usualName: 'home', keys: {}, registerUrl: null, steps: [], redirectUri: null };
    return { title: portal.helper, fields: [...fields, { ...clientId, isUuid: true }, secret], ...rest };
  }
  if (cloud === OTHER_CLOUD) {
    const issuer = { ...required('issuer', portal.issuer, portal.addressHint), address: 'issuer' as const };
    const fields = [issuer, clientId, optionalSecret];
    return { title: portal.other, usualName: 'cloud', keys: {}, fields, registerUrl: null, steps: [], redirectUri };
  }
  const found = clouds.find(({ name }) => name === cloud);
  return found === undefined ? null : presetForm(found, { clientId, secret, optionalSecret }, texts);
}

function presetForm(
  {
    name,
    title,
    texts,
    registerUrl,
    clientSecret,
    variables,
    redirectUri,
    isRedirectEntered,
    needsPublicRedirect,
  }: CloudChoice,
  { clientId, secret, optionalSecret }: Readonly<Record<'clientId' | 'secret' | 'optionalSecret', CloudField>>,
  { portal, language }: Texts,
): CloudForm {
  const { steps, variables: variableTexts } = texts[language];
  const redirect = {
    key: 'redirect_uri',
    label: portal.redirect,
    hint: needsPublicRedirect ? portal.redirectPublicHint : portal.redirectOwnHint,
    usual: redirectUri ?? '',
    isRequired: true,
    isCopied: true as const,
  };
  return {
    title,
    usualName: name,
    keys: { preset: name },
    fields: [
      ...(registerUrl === null ? [] : [clientId]),
      ...(clientSecret === 'none' ? [] : [clientSecret === 'required' ? secret : optionalSecret]),
      ...variables.map(({ name: variable, usual, values }) => ({
        key: `variables.${variable}`,
        label: variableTexts[variable]?.label ?? variable,
        hint: portal.variableHint(variableTexts[variable]?.description ?? ''),
        usual: usual ?? '',
        values,
        isRequired: usual === null,
      })),
      ...(isRedirectEntered ? [redirect] : []),
    ],
    registerUrl,
    steps,
    redirectUri: isRedirectEntered ? null : redirectUri,
  };
}
