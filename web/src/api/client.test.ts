import { expect, test } from "vitest";
import { errorText } from "./client";

test.each([
  ['{"errors":["org.apache.flink.runtime.rest.NotFoundException: Job ab not found\\n\\tat org.apache..."]}', "Job ab not found"],
  ['{"errors":["a token is required"]}', "a token is required"],
  ['{"errors":[]}', '{"errors":[]}'],
  ["Bad Gateway\n", "Bad Gateway"],
  ["", ""],
])("errorText(%j) is %j", (body, want) => expect(errorText(body)).toBe(want));
