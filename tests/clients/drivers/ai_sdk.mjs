// Runs one session of the AI SDK and prints what its user got: streamText with tools, each tool run by the SDK,
// until the model answers in text.
//
//   node ai_sdk.mjs PROVIDER_VERSION URL < scenario.json > outcome.json
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
const scenario = JSON.parse(await readAll(process.stdin));

const say = (error) => (error instanceof Error ? `${error.name}: ${error.message}` : JSON.stringify(error));
const errors = [];
const ran = [];

const tools = Object.fromEntries(
  scenario.tools.map(({ name, description, parameters }) => {
    const schema = ai.jsonSchema(parameters);
    const execute = async (input, { toolCallId }) => {
      ran.push({ id: toolCallId, name, arguments: JSON.stringify(input) });
      return RESULT;
    };
    return [name, { description, parameters: schema, inputSchema: schema, execute }];
  }),
);

const provider = createOpenAICompatible({ name: "gemmaserve", baseURL: `${url}/v1`, apiKey: "none" });
const outcome = { text: "", calls: ran, finish: null, answer: null, error: null };
try {
  const result = ai.streamText({
    model: provider("gemma-4"),
    prompt: scenario.prompt,
    tools,
    maxRetries: 0,
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
process.stdout.write(JSON.stringify(outcome));
