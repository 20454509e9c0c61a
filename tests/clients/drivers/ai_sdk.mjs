// Runs sessions of the AI SDK and prints what its user got of each: streamText with tools, each tool run by the SDK,
// until the model answers in text.
//
//   node ai_sdk.mjs PROVIDER_VERSION URL < scenarios.json > outcomes.jsonl
//
// Run in the folder that holds node_modules. The provider's versions each go with one version of `ai`.
import { createRequire } from "node:module";
import { text as readAll } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

const CORE = { 0.2: "ai-4", 1: "ai-5", 2: "ai-6", 3: "ai-7" };
const MAX_STEPS = 3;
const RESULT = "done";

const [version, url] = process.argv.slice(2);
const require = createRequire(`${process.cwd()}/`);
const load = (name) => import(pathToFileURL(require.resolve(name)));
const ai = await load(CORE[version]);
const { createOpenAICompatible } = await load(`openai-compatible-${version}`);
const provider = createOpenAICompatible({ name: "gemmaserve", baseURL: `${url}/v1`, apiKey: "none" });

function say(error) {
  if (error instanceof Error) return `${error.name}: ${error.message}`;
  return typeof error === "string" ? error : JSON.stringify(error);
}

// The tools of a scenario; each call that the SDK makes of one is added to `calls`.
function toolsOf(scenario, calls) {
  return Object.fromEntries(
    scenario.tools.map(({ name, description, parameters }) => {
      const schema = ai.jsonSchema(parameters);
      const execute = async (input, { toolCallId }) => {
        calls.push({ id: toolCallId, name, arguments: JSON.stringify(input) });
        return RESULT;
      };
      return [name, { description, parameters: schema, inputSchema: schema, execute }];
    }),
  );
}

async function run(scenario) {
  const outcome = { text: "", calls: [], finish: null, answer: null, error: null };
  const errors = [];
  try {
    const result = ai.streamText({
      model: provider("gemma-4"),
      prompt: scenario.prompt,
      tools: toolsOf(scenario, outcome.calls),
      maxRetries: 0,
      maxTokens: scenario.max_tokens, // its name in ai 4
      maxOutputTokens: scenario.max_tokens,
      ...(ai.stepCountIs ? { stopWhen: ai.stepCountIs(MAX_STEPS) } : { maxSteps: MAX_STEPS }),
      onError: ({ error }) => errors.push(say(error)),
    });
    for await (const part of result.fullStream) {
      if (part.type === "tool-error") errors.push(say(part.error));
    }
    const steps = await result.steps;
    outcome.text = steps[0].text;
    outcome.finish = steps[0].finishReason;
    outcome.answer = steps.length > 1 ? steps.at(-1).text : null;
  } catch (error) {
    errors.push(say(error));
  }
  outcome.error = errors[0] ?? null;
  return outcome;
}

for (const scenario of JSON.parse(await readAll(process.stdin))) {
  process.stdout.write(`${JSON.stringify(await run(scenario))}\n`);
}
