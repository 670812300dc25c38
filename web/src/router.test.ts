import { expect, test } from "vitest";
import { jobHref, parse, vertexHref } from "./router";

test.each([
  ["", { page: "jobs" }],
  ["#/", { page: "jobs" }],
  ["#/jobs", { page: "jobs" }],
  ["#/jobs/ab", { page: "job", jid: "ab", tab: "overview", vertex: null }],
  ["#/jobs/ab/late", { page: "job", jid: "ab", tab: "late", vertex: null }],
  ["#/jobs/ab/vertices/cd", { page: "job", jid: "ab", tab: "overview", vertex: "cd" }],
  ["#/jobs/ab/nonsense", { page: "unknown" }],
  ["#/jobs/ab/late/more", { page: "unknown" }],
  ["#/jobs/ab/vertices/cd/ef", { page: "unknown" }],
  ["#/elsewhere", { page: "unknown" }],
  ["#/jobs/%zz", { page: "job", jid: "%zz", tab: "overview", vertex: null }],
])("parse(%j)", (hash, want) => expect(parse(hash)).toEqual(want));

test("links lead to what parse reads", () => {
  expect(parse(jobHref("a/b", "why"))).toEqual({ page: "job", jid: "a/b", tab: "why", vertex: null });
  expect(parse(vertexHref("ab", "c d"))).toEqual({ page: "job", jid: "ab", tab: "overview", vertex: "c d" });
});
