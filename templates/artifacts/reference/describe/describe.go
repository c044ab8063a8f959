// Package describe prints what one component accepts: every flag, every feature gate, and every
// field of the files that configure it.
//
// It is compiled within the Go module of a Kubernetes version, so what it prints is what the
// component of that version was compiled from.
package describe

import (
	"encoding/json"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"
	// Every component has it; it brings flags.
	_ "k8s.io/component-base/logs/json/register"
)

// Component is what one program accepts.
type Component struct {
	Flags  map[string]Flag  `json:"flags"`
	Kinds  map[string]*Kind `json:"kinds"`
	Gates  map[string]Gate  `json:"feature_gates"`
	failed error
}

// Flag is one flag; an absent default is the zero value of its type.
type Flag struct {
	Type       string `json:"type"`
	Default    string `json:"default,omitempty"`
	Deprecated string `json:"deprecated,omitempty"`
	Hidden     bool   `json:"hidden,omitempty"`
}

// Gate is one feature gate.
type Gate struct {
	Stage   string `json:"stage"`
	Default bool   `json:"default"`
	Locked  bool   `json:"locked,omitempty"`
}

// Command looks at the flags of a command, and at those of libraries that cobra adds to it.
func Command(command *cobra.Command, gates featuregate.MutableFeatureGate) *Component {
	command.LocalFlags()
	return New(command.Flags(), gates)
}

// New looks at the flags and the feature gates.
func New(flags *pflag.FlagSet, gates featuregate.MutableFeatureGate) *Component {
	component := &Component{Flags: map[string]Flag{}, Kinds: map[string]*Kind{}, Gates: map[string]Gate{}}
	// As each component does before it parses.
	flags.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "help" {
			component.Flags[flag.Name] = describeFlag(flag)
		}
	})
	for name, spec := range gates.GetAll() {
		component.Gates[string(name)] = Gate{Stage: stage(spec), Default: spec.Default, Locked: spec.LockToDefault}
	}
	return component
}

// Print ends the program.
func (component *Component) Print() {
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	if component.failed == nil {
		component.failed = encoder.Encode(component)
	}
	if component.failed != nil {
		os.Stderr.WriteString(component.failed.Error() + "\n")
		os.Exit(1)
	}
}

func describeFlag(flag *pflag.Flag) Flag {
	// A usage may name a placeholder, which the help shows where the type would stand.
	plain := *flag
	plain.Usage = ""
	name, _ := pflag.UnquoteUsage(&plain)
	if flag.Value.Type() == "bool" {
		name = "bool"
	}
	described := Flag{Type: name, Deprecated: flag.Deprecated, Hidden: flag.Hidden}
	if !isZero(flag) {
		described.Default = flag.DefValue
	}
	return described
}

// isZero says whether the default is what the type has anyway.
func isZero(flag *pflag.Flag) bool {
	switch flag.DefValue {
	case "":
		return true
	case "0", "0s", "[]", "false", "<nil>":
		return flag.Value.Type() != "string"
	}
	return false
}

func stage(spec featuregate.FeatureSpec) string {
	if spec.PreRelease == featuregate.GA {
		return "ga"
	}
	return strings.ToLower(string(spec.PreRelease))
}
