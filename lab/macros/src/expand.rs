//! From the function and the arguments to the test.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Error, FnArg, ItemFn, LitStr, Result, ReturnType, Signature, Type, spanned::Spanned};

use crate::args::{Args, Source};

/// Expands `#[test(args)] item`.
///
/// The function stands inside the test under the same name, since snapshots are named after the innermost function.
pub(crate) fn test(args: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let ItemFn { attrs, vis, sig, block } = syn::parse2(item)?;
    let function = function(&sig);
    let again = attrs.iter().filter(|attr| attr.path().segments.last().is_some_and(|last| last.ident == "test"));
    let again =
        again.map(|attr| Error::new(attr.span(), "the function is made a test already: take this attribute away"));
    let parsed: Result<Args> = syn::parse2(args);
    let errors = function.err().into_iter().chain(again);
    let args = match (parsed, errors.reduce(combined)) {
        (Ok(args), None) => args,
        (Ok(_), Some(error)) | (Err(error), None) => return Err(error),
        (Err(first), Some(error)) => return Err(combined(first, error)),
    };

    let (path, text) = source(&args.source, &sig);
    let name = &sig.ident;
    let needs = (!args.needs.is_empty()).then(|| {
        let needs = &args.needs;
        quote! {
            #(
                if !::xdplab::testing::has(#needs) {
                    return;
                }
            )*
        }
    });
    let run =
        if sig.asyncness.is_some() { quote!(::xdplab::testing::block_on(#name(lab))) } else { quote!(#name(lab)) };
    // What the compiler says of the function's argument is said at the argument.
    let call = quote_spanned!(sig.inputs.span()=> ::xdplab::testing::with_lab(#path, #text, |lab| #run););
    Ok(quote! {
        #(#attrs)*
        #[::core::prelude::v1::test]
        #vis fn #name() {
            #sig #block
            #needs
            #call
        }
    })
}

fn combined(mut first: Error, second: Error) -> Error {
    first.combine(second);
    first
}

/// What a test's function may look like.
fn function(sig: &Signature) -> Result<()> {
    let mut errors = Vec::new();
    let mut refuse = |what: &dyn ToTokens, message: &str| errors.push(Error::new_spanned(what, message));
    let takes = "a lab's test takes the lab and nothing else: `fn name(lab: &Lab)` or `lab: &mut Lab`";
    match sig.inputs.iter().collect::<Vec<_>>()[..] {
        [FnArg::Typed(argument)] if matches!(&*argument.ty, Type::Reference(_)) => {}
        [] => refuse(&sig.ident, takes),
        _ => refuse(&sig.inputs, takes),
    }
    if let ReturnType::Type(..) = sig.output {
        refuse(&sig.output, "a lab's test returns nothing: it panics, `unwrap` shows the error");
    }
    if !sig.generics.params.is_empty() {
        refuse(&sig.generics, "a lab's test has no generic parameters: nothing could choose them");
    }
    if let Some(keyword) = &sig.constness {
        refuse(keyword, "a lab's test can't be `const`");
    }
    if let Some(keyword) = &sig.unsafety {
        refuse(keyword, "a lab's test can't be `unsafe`: write an `unsafe` block inside");
    }
    if let Some(abi) = &sig.abi {
        refuse(abi, "a lab's test has no ABI of its own");
    }
    errors.into_iter().reduce(combined).map_or(Ok(()), Err)
}

/// The topology's path and its text, as expressions.
fn source(source: &Source, sig: &Signature) -> (TokenStream, TokenStream) {
    match source {
        Source::File(path) => {
            let span = path.span();
            let place = if path.value().starts_with('/') { quote!(#path) } else { in_package(path) };
            (place.clone(), quote_spanned!(span=> ::core::include_str!(#place)))
        }
        Source::Text(text) => {
            let bare = format_ident!("{}", sig.ident).to_string();
            let name = LitStr::new(&format!("{} (topology_text)", bare.trim_start_matches("r#")), text.span());
            (in_package(&name), quote!(#text))
        }
    }
}

/// A path in the folder of the package that the test belongs to.
fn in_package(path: &LitStr) -> TokenStream {
    quote_spanned!(path.span()=> ::core::concat!(::core::env!("CARGO_MANIFEST_DIR"), "/", #path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn expands(args: TokenStream, item: TokenStream, expected: &TokenStream) {
        let found = test(args, item).expect("a test");
        assert_eq!(found.to_string(), expected.to_string());
    }

    #[track_caller]
    fn refuses(args: TokenStream, item: TokenStream) -> Vec<String> {
        let error = test(args, item).expect_err("no test");
        error.into_iter().map(|error| error.to_string()).collect()
    }

    fn plain() -> TokenStream {
        quote!(
            fn name(lab: &Lab) {}
        )
    }

    #[test]
    fn a_function_becomes_a_test_of_its_own_name() {
        expands(
            quote!(topology = "topologies/redirect-veth.toml"),
            quote! {
                /// What it shows.
                #[ignore = "slow"]
                pub fn redirect_loses_nothing(lab: &Lab) {
                    assert!(lab.is_up());
                }
            },
            &quote! {
                /// What it shows.
                #[ignore = "slow"]
                #[::core::prelude::v1::test]
                pub fn redirect_loses_nothing() {
                    fn redirect_loses_nothing(lab: &Lab) {
                        assert!(lab.is_up());
                    }
                    ::xdplab::testing::with_lab(
                        ::core::concat!(::core::env!("CARGO_MANIFEST_DIR"), "/", "topologies/redirect-veth.toml"),
                        ::core::include_str!(::core::concat!(
                            ::core::env!("CARGO_MANIFEST_DIR"), "/", "topologies/redirect-veth.toml"
                        )),
                        |lab| redirect_loses_nothing(lab)
                    );
                }
            },
        );
    }

    #[test]
    fn an_absolute_path_stays() {
        expands(
            quote!(topology = "/labs/a.toml"),
            plain(),
            &quote! {
                #[::core::prelude::v1::test]
                fn name() {
                    fn name(lab: &Lab) {}
                    ::xdplab::testing::with_lab("/labs/a.toml", ::core::include_str!("/labs/a.toml"), |lab| name(lab));
                }
            },
        );
    }

    #[test]
    fn an_async_function_with_needs_and_a_topology_of_its_own() {
        expands(
            quote!(topology_text = "name = \"a\"", needs = ["root", "btf"],),
            quote!(
                async fn name(lab: &Lab) {
                    wait().await;
                }
            ),
            &quote! {
                #[::core::prelude::v1::test]
                fn name() {
                    async fn name(lab: &Lab) {
                        wait().await;
                    }
                    if !::xdplab::testing::has("root") {
                        return;
                    }
                    if !::xdplab::testing::has("btf") {
                        return;
                    }
                    ::xdplab::testing::with_lab(
                        ::core::concat!(::core::env!("CARGO_MANIFEST_DIR"), "/", "name (topology_text)"),
                        "name = \"a\"",
                        |lab| ::xdplab::testing::block_on(name(lab))
                    );
                }
            },
        );
    }

    #[test]
    fn wrong_arguments_are_named() {
        let of = |args| refuses(args, plain()).join("\n");
        assert!(of(quote!()).starts_with("a topology is missing"), "{}", of(quote!()));
        assert_eq!(
            of(quote!(topolgy = "a")),
            "unknown argument `topolgy`: expected `topology`, `topology_text` or `needs`"
        );
        assert_eq!(of(quote!(topology = 3)), "`topology` takes a text: `topology = \"…\"`");
        assert_eq!(of(quote!(topology = " ")), "`topology` is empty");
        assert_eq!(of(quote!(topology = "a", topology = "b")), "`topology` is given twice");
        assert_eq!(
            of(quote!(topology = "a", topology_text = "b")),
            "`topology` and `topology_text` exclude each other: keep one"
        );
        assert_eq!(of(quote!(topology = "a", needs = "root")), "`needs` takes a list of texts: `needs = [\"root\"]`");
        assert_eq!(of(quote!(topology = "a", needs = [root])), "`needs` takes a list of texts: `needs = [\"root\"]`");
        assert_eq!(of(quote!(topology = "a", needs = ["root", "root"])), "`root` is given twice");
        assert_eq!(of(quote!("a.toml")), "expected identifier");
    }

    #[test]
    fn wrong_functions_are_refused_with_every_reason_at_once() {
        let found = refuses(
            quote!(topology = "a"),
            quote! {
                #[tokio::test]
                unsafe fn name<T>(lab: Lab, more: T) -> Result<(), T> {}
            },
        );
        assert_eq!(found.len(), 5, "{found:#?}");
        let found = refuses(
            quote!(topology_text = ""),
            quote!(
                fn name() {}
            ),
        );
        assert_eq!(
            found,
            [
                "`topology_text` is empty",
                "a lab's test takes the lab and nothing else: `fn name(lab: &Lab)` or `lab: &mut Lab`"
            ]
        );
        assert_eq!(
            refuses(
                quote!(topology = "a"),
                quote!(
                    fn name(lab: Lab) {}
                )
            )
            .len(),
            1
        );
        assert_eq!(
            refuses(
                quote!(topology = "a"),
                quote!(
                    struct Lab;
                )
            ),
            ["expected `fn`"]
        );
    }
}
