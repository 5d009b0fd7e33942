// Renders a Helm chart as `helm install` would, by Helm's own library: its loader, its values, its schema, its templates.
//
//	render CHART NAME NAMESPACE < VALUES.json
//
// Prints the rendered files as a JSON object, by name.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	chart, err := loader.Load(os.Args[1])
	must(err)
	text, err := io.ReadAll(os.Stdin)
	must(err)
	given, err := chartutil.ReadValues(text)
	must(err)
	must(chartutil.ProcessDependencies(chart, given))
	release := chartutil.ReleaseOptions{Name: os.Args[2], Namespace: os.Args[3], Revision: 1, IsInstall: true}
	values, err := chartutil.ToRenderValues(chart, given, release, chartutil.DefaultCapabilities)
	must(err)
	files, err := engine.Render(chart, values)
	must(err)
	must(json.NewEncoder(os.Stdout).Encode(files))
}
