package describe

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a kind of file that configures the component.
type Kind struct {
	APIVersion string           `json:"api_version"`
	Fields     map[string]Field `json:"fields"`
}

// Field is one field. Its name in the file stands behind those of the objects around it:
// `a.b`; `a[].b` is a field of each element of a list, `a.*.b` of each value of a map.
type Field struct {
	Type    string          `json:"type"`
	Default json.RawMessage `json:"default,omitempty"`
}

// Types that JSON shows in another way than Go.
var known = map[string]string{
	"k8s.io/apimachinery/pkg/api/resource.Quantity":        "quantity",
	"k8s.io/apimachinery/pkg/apis/meta/v1.Duration":        "duration",
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":            "time",
	"k8s.io/apimachinery/pkg/runtime.RawExtension":         "object",
	"k8s.io/apimachinery/pkg/runtime.Unknown":              "object",
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString":      "int-or-string",
	"k8s.io/component-base/logs/api/v1.TimeOrMetaDuration": "duration",
	"k8s.io/apimachinery/pkg/api/resource.QuantityValue":   "quantity",
}

// WithDefaults adds this kind, with what the scheme's own functions fill in.
func (component *Component) WithDefaults(scheme *runtime.Scheme, kind schema.GroupVersionKind) *Component {
	return component.add(scheme, kind, true)
}

// WithTypes adds the newest version of each of these kinds, without defaults.
func (component *Component) WithTypes(scheme *runtime.Scheme, versions []schema.GroupVersion, kinds ...string) *Component {
	for _, kind := range kinds {
		found := false
		for _, version := range versions {
			if scheme.Recognizes(version.WithKind(kind)) && !found {
				found = true
				component.add(scheme, version.WithKind(kind), false)
			}
		}
		if !found {
			component.failed = fmt.Errorf("no version has the kind %s", kind)
		}
	}
	return component
}

func (component *Component) add(scheme *runtime.Scheme, kind schema.GroupVersionKind, defaults bool) *Component {
	object, err := scheme.New(kind)
	if err != nil {
		component.failed = err
		return component
	}
	walk := walk{fields: map[string]Field{}}
	value := any(map[string]any{})
	if defaults {
		scheme.Default(object)
		if value, err = plain(object); err != nil {
			component.failed = err
			return component
		}
	}
	if err := walk.members("", reflect.TypeOf(object).Elem(), value); err != nil {
		component.failed = fmt.Errorf("%s: %w", kind.Kind, err)
	}
	component.Kinds[kind.Kind] = &Kind{APIVersion: kind.GroupVersion().String(), Fields: walk.fields}
	return component
}

// plain is what an object is in JSON.
func plain(object any) (value any, err error) {
	text, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(text, &value)
	}
	return value, err
}

type walk struct {
	fields map[string]Field
	// The types around the one that is looked at: a type within itself has no end.
	around []reflect.Type
}

// members adds the fields of a struct at this place; value is what the defaults have there.
func (w *walk) members(place string, of reflect.Type, value any) error {
	for _, outer := range w.around {
		if outer == of {
			return fmt.Errorf("%s: %s is within itself", place, of)
		}
	}
	w.around = append(w.around, of)
	defer func() { w.around = w.around[:len(w.around)-1] }()
	for _, field := range reflect.VisibleFields(of) {
		if len(field.Index) > 1 {
			continue
		}
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported():
		case field.Type.Name() == "TypeMeta":
		case field.Anonymous && (name == "" || strings.Contains(options, "inline")):
			if err := w.members(place, deref(field.Type), value); err != nil {
				return err
			}
		case name == "":
			return fmt.Errorf("%s%s has no name in JSON", place, field.Name)
		default:
			var inner any
			if object, is := value.(map[string]any); is {
				inner = object[name]
			}
			if err := w.add(place+name, field.Type, inner); err != nil {
				return err
			}
		}
	}
	return nil
}

// add is one field and all below it.
func (w *walk) add(place string, of reflect.Type, value any) error {
	name, err := typeName(of)
	if err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}
	field := Field{Type: name}
	inner, below := innermost(of, place)
	if value != nil && (inner == nil || below != place) {
		if field.Default, err = json.Marshal(value); err != nil {
			return err
		}
	}
	w.fields[place] = field
	if inner == nil {
		return nil
	}
	if below != place {
		// What a list has by default is the default of the list.
		value = nil
	}
	return w.members(below+".", inner, value)
}

// innermost is the struct in lists and maps, if there is one that has fields, and its place.
func innermost(of reflect.Type, place string) (reflect.Type, string) {
	of = deref(of)
	if _, is := known[fullName(of)]; is {
		return nil, place
	}
	switch of.Kind() {
	case reflect.Struct:
		return of, place
	case reflect.Slice, reflect.Array:
		return innermost(of.Elem(), place+"[]")
	case reflect.Map:
		return innermost(of.Elem(), place+".*")
	}
	return nil, place
}

func typeName(of reflect.Type) (string, error) {
	of = deref(of)
	if name, is := known[fullName(of)]; is {
		return name, nil
	}
	if marshaler := reflect.TypeFor[json.Marshaler](); of.Implements(marshaler) || reflect.PointerTo(of).Implements(marshaler) {
		return "", fmt.Errorf("%s has a JSON of its own, and is not listed", fullName(of))
	}
	switch of.Kind() {
	case reflect.Bool:
		return "bool", nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "int", nil
	case reflect.Float32, reflect.Float64:
		return "float", nil
	case reflect.String:
		return "string", nil
	case reflect.Struct:
		return "object", nil
	case reflect.Slice, reflect.Array:
		if of.Elem().Kind() == reflect.Uint8 {
			return "string", nil
		}
		inner, err := typeName(of.Elem())
		return "list<" + inner + ">", err
	case reflect.Map:
		key, err := typeName(of.Key())
		if err != nil {
			return "", err
		}
		inner, err := typeName(of.Elem())
		return "map<" + key + ", " + inner + ">", err
	}
	return "", fmt.Errorf("%s has no name here", of)
}

func fullName(of reflect.Type) string {
	return of.PkgPath() + "." + of.Name()
}

func deref(of reflect.Type) reflect.Type {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return of
}
