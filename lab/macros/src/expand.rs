//! What the attribute expands to.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{
    Expr, ExprLit, ItemFn, Lit, LitStr, MetaNameValue, Result, Token, punctuated::Punctuated, spanned::Spanned as _,
};

/// Where the topology comes from.
enum Topology {
    File(LitStr),
    Text(LitStr),
}

/// Expands the attribute.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let topology = parse_arguments(arguments)?;
    let mut function: ItemFn = syn::parse2(item)?;
    if function.sig.inputs.len() != 1 {
        return Err(syn::Error::new(
            function.sig.span(),
            "a lab's test takes one argument: `lab: &Lab` or `lab: &mut Lab`",
        ));
    }
    let attributes = std::mem::take(&mut function.attrs);
    let visibility = function.vis.clone();
    let name = function.sig.ident.clone();
    // The function keeps its name inside the test of that name: insta names snapshots by the innermost.
    function.vis = syn::Visibility::Inherited;
    let (path, text) = match topology {
        Topology::File(path) => {
            let text = quote!(::core::include_str!(::core::concat!(::core::env!("CARGO_MANIFEST_DIR"), "/", #path)));
            (quote!(::core::concat!(::core::env!("CARGO_MANIFEST_DIR"), "/", #path)), text)
        }
        Topology::Text(text) => (quote!(::core::concat!(::core::file!(), " (topology_text)")), quote!(#text)),
    };
    let call = if function.sig.asyncness.is_some() {
        quote!(::xdplab::testing::block_on(#name(lab)))
    } else {
        quote!(#name(lab))
    };
    Ok(quote! {
        #(#attributes)*
        #[::core::prelude::v1::test]
        #visibility fn #name() {
            #function
            ::xdplab::testing::with_lab(#path, #text, |lab| #call);
        }
    })
}

fn parse_arguments(arguments: TokenStream) -> Result<Topology> {
    let usage = "expected `topology = \"path/of.toml\"` or `topology_text = \"…\"`";
    let parser = Punctuated::<MetaNameValue, Token![,]>::parse_terminated;
    let pairs = syn::parse::Parser::parse2(parser, arguments).map_err(|error| syn::Error::new(error.span(), usage))?;
    let mut topology = None;
    for pair in pairs {
        let Expr::Lit(ExprLit { lit: Lit::Str(value), .. }) = &pair.value else {
            return Err(syn::Error::new(pair.value.span(), "expected a text in quotes"));
        };
        let found = if pair.path.is_ident("topology") {
            Topology::File(value.clone())
        } else if pair.path.is_ident("topology_text") {
            Topology::Text(value.clone())
        } else {
            return Err(syn::Error::new(pair.path.span(), usage));
        };
        if topology.replace(found).is_some() {
            return Err(syn::Error::new(pair.path.span(), "one topology is enough for a test"));
        }
    }
    topology.ok_or_else(|| syn::Error::new(Span::call_site(), usage))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(arguments: TokenStream, item: TokenStream) -> String {
        expand(arguments, item).unwrap_err().to_string()
    }

    #[test]
    fn a_test_keeps_its_name_and_its_attributes() {
        let item = quote!(
            #[should_panic]
            fn frames_arrive(lab: &mut Lab) {}
        );
        let text = expand(quote!(topology = "topologies/drop.toml"), item).unwrap().to_string();
        assert!(text.contains("# [should_panic]"), "{text}");
        assert!(text.contains("fn frames_arrive ()"), "{text}");
        assert!(text.contains("include_str"), "{text}");
    }

    #[test]
    fn an_async_test_gets_a_runtime() {
        let text = expand(
            quote!(topology_text = "x"),
            quote!(
                async fn a(lab: &Lab) {}
            ),
        )
        .unwrap()
        .to_string();
        assert!(text.contains("block_on"), "{text}");
    }

    #[test]
    fn wrong_arguments_are_named() {
        let item = || {
            quote!(
                fn a(lab: &Lab) {}
            )
        };
        assert!(error(quote!(), item()).contains("expected `topology"));
        assert!(error(quote!(topologie = "x"), item()).contains("expected `topology"));
        assert!(error(quote!(topology = 3), item()).contains("text in quotes"));
        assert!(error(quote!(topology = "a", topology_text = "b"), item()).contains("one topology"));
        assert!(
            error(
                quote!(topology = "a"),
                quote!(
                    fn a() {}
                )
            )
            .contains("one argument")
        );
    }
}
