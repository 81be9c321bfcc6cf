import { Option } from 'commander';

/** The languages of a label. */
const LANGUAGES = ['en', 'de'] as const;
type LabelLanguage = (typeof LANGUAGES)[number];

/** An option of the commands that make a label. */
export interface LanguageOption {
  readonly language?: LabelLanguage;
}

/** `--language` */
export function languageOption(): Option {
  return new Option('--language <code>', 'with --print: the language of the label (default: en)').choices(LANGUAGES);
}

/** What a label says beside names and links. */
interface LabelTexts {
  /** On that of an appliance. */
  readonly connect: string;
  /** On that of a hub. */
  readonly setUp: string;
  readonly setupCodeOf: (hub: string) => string;
  /** Between the caption and the link, in a text. */
  readonly open: string;
  /** Before another link. */
  readonly or: string;
}

const TEXTS: Readonly<Record<LabelLanguage, LabelTexts>> = {
  en: {
    connect: 'Scan to connect',
    setUp: 'Scan to set up',
    setupCodeOf: (hub) => `Setup code of ${hub}`,
    open: ', or open',
    or: 'or',
  },
  de: {
    connect: 'Zum Verbinden scannen',
    setUp: 'Zum Einrichten scannen',
    setupCodeOf: (hub) => `Einrichtungscode von ${hub}`,
    open: ', oder öffnen:',
    or: 'oder',
  },
};

/** The texts of a label; English by default. */
export function labelTexts({ language = 'en' }: LanguageOption): LabelTexts {
  return TEXTS[language];
}
