import { Command, Help, InvalidArgumentError, Option } from 'commander';
import type { ExamReport } from '../../emulator/exam/exam.ts';
import { collectText } from '../terminal/collect-text.ts';
import { print, printJson } from '../terminal/output.ts';
import { waitForTerminationSignal } from '../terminal/signals.ts';
import { examTable, junitReport } from './exam-report.ts';

interface Options {
  readonly only?: readonly string[];
  readonly format: 'table' | 'json' | 'junit';
  readonly https?: true;
  readonly redirect?: string;
  readonly log?: string;
}

/** Help without the options of `emulator`, which are not those of the exam. */
class ExamHelp extends Help {
  override visibleGlobalOptions(command: Command): Option[] {
    return command.parent === null ? [] : super.visibleGlobalOptions(command.parent);
  }
}

/** `latchkey emulator exam` */
export function examCommand(): Command {
  const exam = new Command('exam');
  exam.createHelp = () => Object.assign(new ExamHelp(), exam.configureHelp());
  return exam
    .description(
      'run an OAuth client program through situations, and say what it does wrong and which sentence of which RFC says so',
    )
    .argument('<command...>', 'the program with its arguments, after --')
    .option('--only <name>', 'only this group of situations, or this situation; may be repeated', collectText)
    .addOption(
      new Option('--format <format>', 'the form of the report').choices(['table', 'json', 'junit']).default('table'),
    )
    .option('--https', 'serve the programs over HTTPS; the variables for certificates name the file of its CA')
    .option(
      '--redirect <uri>',
      'the redirect URI of the program, whose port the exam chooses (default: http://127.0.0.1/callback)',
      parseRedirectUri,
    )
    .option('--log <folder>', 'where to write what the program prints and sends in each situation')
    .action(async (words: readonly string[], { format, ...options }: Options, command: Command) => {
      rejectEmulatorOptions(command);
      const terminated = waitForTerminationSignal();
      const report = await runToEnd(words, options, terminated, command);
      if (format === 'json') printJson(report);
      else print(format === 'junit' ? junitReport(report) : examTable(report));
      if (report.failed > 0) process.exitCode = 1;
    });
}

function parseRedirectUri(text: string): string {
  const url = URL.parse(text);
  const isLoopback = ['127.0.0.1', 'localhost'].includes(url?.hostname ?? '');
  if (url?.protocol === 'http:' && isLoopback && url.port === '') return text;
  throw new InvalidArgumentError(
    'allowed is an address such as http://localhost/callback, on 127.0.0.1 or localhost, without a port.',
  );
}

/** Commander takes options of `emulator` after `exam`, too. */
function rejectEmulatorOptions(command: Command): void {
  const { parent } = command;
  const given = parent?.options.find((option) => parent.getOptionValueSource(option.attributeName()) === 'cli');
  if (given !== undefined)
    command.error(`error: unknown option '${given.long}': it is one of emulator, not of its exam`);
}

async function runToEnd(
  words: readonly string[],
  { only = [], https, redirect, log }: Omit<Options, 'format'>,
  terminated: Promise<NodeJS.Signals | null>,
  command: Command,
): Promise<ExamReport> {
  const [{ abandonExams, runExam }, { ExamError }, { selectSituations, SELECTIONS }] = await Promise.all([
    import('../../emulator/exam/exam.ts'),
    import('../../emulator/exam/admission.ts'),
    import('../../emulator/exam/situations/all.ts'),
  ]);
  const unknown = only.find((name) => !SELECTIONS.includes(name));
  if (unknown !== undefined) {
    const { didYouMean } = await import('../../system/did-you-mean.ts');
    command.error(`error: --only ${unknown}: unknown group or situation${didYouMean(unknown, SELECTIONS)}`);
  }
  const situations = selectSituations(only);
  // Also after a second signal, which ends this process at once.
  process.once('exit', abandonExams);
  const interrupted = new AbortController();
  void terminated.then((signal) =>
    interrupted.abort(new ExamError(`the exam was ended by ${signal}; nothing of it runs any more`)),
  );
  let done = 0;
  const onResult = () => {
    done += 1;
    if (process.stderr.isTTY)
      process.stderr.write(`\r${done} of ${situations.length} situations${done === situations.length ? '\n' : ''}`);
  };
  try {
    const options = { command: words, situations, tls: https, redirectUri: redirect, log };
    return await runExam({ ...options, signal: interrupted.signal, onResult });
  } catch (error) {
    if (error instanceof ExamError && error.isUsage) command.error(`error: ${error.message}`);
    throw error;
  }
}
