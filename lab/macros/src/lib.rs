//! `#[xdplab::test]`: a test with a lab of its own.

mod args;
mod expand;

use proc_macro::TokenStream;

/// Turns a function into a test that gets an ephemeral lab.
///
/// ```ignore
/// #[xdplab::test(topology = "topologies/redirect-veth.toml")]
/// fn every_frame_arrives(lab: &mut Lab) {
///     let record = xdplab::run::scenario(lab, "redirect", XdpMode::Native, &RunOptions::default()).unwrap();
///     assert!(record.ledger.is_balanced());
/// }
/// ```
///
/// The topology's path is relative to the package, and its text is compiled in: a changed file rebuilds the test. The
/// test keeps its own name, by which insta names its snapshots. `topology_text = "…"` takes the text itself; paths in it
/// start at the package. `needs = ["…"]` names abilities of the host (see `xdplab doctor`) without which the test fails, or
/// is skipped where `XDPLAB_MAY_SKIP` names them. The function takes `&Lab` or `&mut Lab` and returns nothing: a test
/// panics. It may be `async`: it then runs on a runtime of its own. Other attributes, such as `#[ignore]`, stay.
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::test(arguments.into(), item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
