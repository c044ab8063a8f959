// etcd prints what etcd accepts, in the form of the package describe, which needs Kubernetes'
// modules: this program is compiled within etcd's own.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"go.etcd.io/etcd/pkg/v3/featuregate"
	"go.etcd.io/etcd/server/v3/embed"
)

type described struct {
	Type    string `json:"type"`
	Default string `json:"default,omitempty"`
}

type gate struct {
	Stage   string `json:"stage"`
	Default bool   `json:"default"`
	Locked  bool   `json:"locked,omitempty"`
}

// Flags that etcd's main package adds, which exports none of them.
var ofMain = map[string]described{
	"config-file":           {Type: "string"},
	"discovery-fallback":    {Type: "string"},
	"initial-cluster-state": {Type: "string"},
	"v2-deprecation":        {Type: "string"},
	"version":               {Type: "bool"},
}

func main() {
	configuration := embed.NewConfig()
	set := flag.NewFlagSet("etcd", flag.ContinueOnError)
	configuration.AddFlags(set)
	flags, gates := ofMain, map[string]gate{}
	set.VisitAll(func(flag *flag.Flag) {
		flags[flag.Name] = described{Type: typeName(flag.Value), Default: shownDefault(flag)}
	})
	for name, spec := range configuration.ServerFeatureGate.(featuregate.MutableFeatureGate).GetAll() {
		stage := strings.ToLower(string(spec.PreRelease))
		if spec.PreRelease == featuregate.GA {
			stage = "ga"
		}
		gates[string(name)] = gate{Stage: stage, Default: spec.Default, Locked: spec.LockToDefault}
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(map[string]any{"flags": flags, "kinds": map[string]any{}, "feature_gates": gates}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// typeName is the type in the words that pflag has for it.
func typeName(value flag.Value) string {
	if getter, is := value.(flag.Getter); is {
		switch getter.Get().(type) {
		case bool:
			return "bool"
		case int, int64:
			return "int"
		case uint, uint64:
			return "uint"
		case uint32:
			return "uint32"
		case float64:
			return "float"
		case time.Duration:
			return "duration"
		}
	}
	switch name := fmt.Sprintf("%T", value); name {
	case "*flags.StringsValue", "*flags.UniqueStringsValue":
		return "strings"
	case "*flags.URLsValue", "*flags.UniqueURLs":
		return "urls"
	case "*flags.uint32Value":
		return "uint32"
	}
	if set, is := value.(featuregate.MutableFeatureGate); is && set != nil {
		return "mapStringBool"
	}
	return "string"
}

func shownDefault(flag *flag.Flag) string {
	switch flag.DefValue {
	case "0", "0s", "false":
		return ""
	}
	return flag.DefValue
}
