//! XML as Amazon's APIs answer with it. Elements are found in whatever name space: that of an API
//! carries its version.

use roxmltree::{Document, Node};

use crate::cloud::http;

/// Whether this is an element of this name.
pub(super) fn is_named(node: Node<'_, '_>, name: &str) -> bool {
    node.is_element() && node.tag_name().name() == name
}

/// The text of a child; empty where there is none.
pub(super) fn child<'d>(node: Node<'d, '_>, name: &str) -> &'d str {
    node.children().find(|child| is_named(*child, name)).and_then(|child| child.text()).unwrap_or_default()
}

/// Code and message of the `<Error>` that an answer has somewhere.
pub(super) fn read_error(text: &str) -> (String, String) {
    let Ok(document) = Document::parse(text) else { return (String::new(), http::shorten(text)) };
    let error = document.descendants().find(|node| is_named(*node, "Error"));
    error.map_or_else(
        || (String::new(), http::shorten(text)),
        |error| (child(error, "Code").to_owned(), child(error, "Message").to_owned()),
    )
}
