import { render } from "preact";
import { App } from "./app";
import { applyTheme } from "./theme";
import "uplot/dist/uPlot.min.css";
import "./style.css";

applyTheme();
render(<App />, document.getElementById("app")!);
