// Renders a Helm chart with Go's own templates and those of Helm's functions that the chart uses.
//
//	go run render.go CHART < VALUES.json
//
// VALUES.json has what templates see: Values and Release. Prints all documents.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

func toJson(value any) (string, error) {
	text, err := json.Marshal(value)
	return string(text), err
}

func indent(spaces int, text string) string {
	pad := strings.Repeat(" ", spaces)
	return pad + strings.ReplaceAll(text, "\n", "\n"+pad)
}

func dict(pairs ...any) map[string]any {
	found := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		found[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return found
}

func ternary(yes, no any, condition bool) any {
	if condition {
		return yes
	}
	return no
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	var given map[string]any
	fail(json.NewDecoder(os.Stdin).Decode(&given))
	functions := template.FuncMap{
		"toJson": toJson, "indent": indent, "dict": dict, "ternary": ternary,
		"quote": func(value any) string { return fmt.Sprintf("%q", fmt.Sprint(value)) },
	}
	paths, err := filepath.Glob(filepath.Join(os.Args[1], "templates", "*.yaml"))
	fail(err)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		fail(err)
		parsed, err := template.New(path).Option("missingkey=error").Funcs(functions).Parse(string(text))
		fail(err)
		fmt.Println("---")
		fail(parsed.Execute(os.Stdout, given))
	}
}
