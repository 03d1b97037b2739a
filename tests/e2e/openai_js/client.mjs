// Uses OpenAI's JavaScript client in every way that the tests look at, and prints what came of each.
import OpenAI from "openai";

const baseURL = `${process.argv[2]}/v1`;
const client = new OpenAI({ baseURL, apiKey: "any" });
const model = "chat";
const user = (content) => [{ role: "user", content }];
const parameters = { type: "object", properties: { city: { type: "string" } } };
const tools = [{ type: "function", function: { name: "weather", parameters } }];
const monotonicMs = () => Number(process.hrtime.bigint()) / 1e6;

async function caught(work) {
  try {
    await work();
  } catch (error) {
    const { status, code, param, type } = error;
    return { name: error.constructor.name, status, code, param, type, told: error.error };
  }
  return null;
}

const ways = {
  async whole() {
    const { data, request_id } = await client.chat.completions
      .create({ model, messages: user("Hello"), max_completion_tokens: 5 }, id("js-whole"))
      .withResponse();
    return { ...data, request_id };
  },
  async stream() {
    const stream = await client.chat.completions.create({
      model, messages: user("Hello"), stream: true, stream_options: { include_usage: true },
    });
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    return chunks;
  },
  async rounds() {
    const asked = [];
    const weather = (told) => (asked.push(told), "sunny");
    const runner = client.chat.completions.runTools({
      model,
      messages: user("What is it like outside? Do weather."),
      tools: [{ type: "function", function: { ...tools[0].function, function: weather, parse: JSON.parse } }],
    });
    return { text: await runner.finalContent(), asked };
  },
  async streamedCall() {
    const stream = client.chat.completions.stream({
      model, tools, messages: user("What is it like outside? Do weather."),
    });
    return (await stream.finalChatCompletion()).choices[0];
  },
  async errors() {
    const ask = (fields, options) => () =>
      client.chat.completions.create({ model, messages: user("Hello"), ...fields }, options);
    return {
      bad: await caught(ask({ n: 2 })),
      unknown: await caught(ask({ model: "nobody" })),
      provider: await caught(ask({ messages: user("Hello? [sim: 503]") }, id("js-503"))),
      slow: await caught(ask({ messages: user("Hello? [sim: silent]") }, { timeout: 300, maxRetries: 0 })),
      cut: await caught(async () => {
        const stream = await ask({ messages: user("Hello? [sim: reset?at_token=5]"), stream: true })();
        for await (const _ of stream);
      }),
    };
  },
  async leaving() {
    const endless = user("Hello? [sim: none?tokens=2000&token_interval_s=0.02]");
    const stream = await client.chat.completions.create(
      { model, messages: endless, stream: true }, id("js-leaves"));
    for await (const _ of stream) break;
    return { left_ms: monotonicMs() };
  },
  async responses() {
    const tool = { type: "function", name: "weather", parameters, strict: false };
    const input = "What is it like outside? Do weather.";
    const first = await client.responses.create({ model, input, tools: [tool] });
    const [call] = first.output.filter((item) => item.type === "function_call");
    const result = { type: "function_call_output", call_id: call.call_id, output: "sunny" };
    const items = [{ role: "user", content: input }, ...first.output, result];
    const second = await client.responses.create({ model, input: items, tools: [tool] });
    const stream = await client.responses.create({ model, input: "Hello", stream: true });
    const types = [];
    let text = "";
    for await (const event of stream) {
      types.push(event.type);
      if (event.type === "response.output_text.delta") text += event.delta;
    }
    return { call: call.name, second: second.output_text, types, text };
  },
  async models() {
    const found = [];
    for await (const each of client.models.list()) found.push(each.id);
    return found;
  },
};

function id(name) {
  return { headers: { "x-request-id": name } };
}

const told = {};
for (const [name, way] of Object.entries(ways)) told[name] = await way();
console.log(JSON.stringify(told));
