import type { Experiment, ExperimentResult } from './experiment.ts';
import { checkParser, type ParserCase } from './parser-case.ts';
import { startControlParserCases } from './parsers-control.ts';
import { directParserCases } from './parsers-direct.ts';
import { startPortalParserCase } from './parsers-portal.ts';

export const experiment: Experiment = {
  name: 'External input',
  promise:
    'No external input ends or hangs the hub, makes it respond with an internal error, or makes it reveal a secret.',
  async run(scale) {
    const figures: Record<string, number> = {};
    const broken: string[] = [];
    await using control = await startControlParserCases();
    await using portal = await startPortalParserCase();
    await all(directParserCases, scale.long ? 40_000 : 200);
    await all([portal.trial], scale.long ? 10_000 : 100);
    await all(control.trials, scale.long ? 10_000 : 60);
    return { figures, broken: [...broken, ...(await control.conclusions())] } satisfies ExperimentResult;

    async function all<Input>(trials: readonly ParserCase<Input>[], runs: number): Promise<void> {
      for (const trial of trials) {
        if (scale.signal.aborted) return;
        const { runs: done, wrong } = await checkParser(trial, runs, scale);
        figures[trial.name] = done;
        if (wrong !== null) broken.push(wrong);
        if (!scale.signal.aborted) scale.progress(`${trial.name}: ${done}`);
      }
    }
  },
};
