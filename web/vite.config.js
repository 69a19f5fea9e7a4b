import { defineConfig } from "vite";

// One file: scripts and styles move into the page. The function form of replace() keeps `$&` in a script as it is.
function oneFile() {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_options, bundle) {
      const page = bundle["index.html"];
      let html = page.source;
      for (const [name, part] of Object.entries(bundle)) {
        if (name.endsWith(".js")) {
          html = html.replace(/<script type="module"[^>]*><\/script>\s*/, "");
          const code = part.code.replace(/<\/script/g, "<\\/script");
          html = html.replace("</body>", () => `<script type="module">${code}</script>\n</body>`);
          delete bundle[name];
        } else if (name.endsWith(".css")) {
          html = html.replace(/<link rel="stylesheet"[^>]*>/, () => `<style>${part.source}</style>`);
          delete bundle[name];
        }
      }
      page.source = html;
      page.fileName = "report.html";
    },
  };
}

export default defineConfig({
  base: "./",
  plugins: [oneFile()],
  build: { outDir: "../build/web", emptyOutDir: false, assetsInlineLimit: 1e6, modulePreload: false, target: "es2022" },
});
